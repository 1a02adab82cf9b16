// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestEachVerbTakesTheNamesThatOutputNameHas, and names of another namespace.
func TestEachVerbTakesTheNamesThatOutputNameHas(t *testing.T) {
	u := someone(t)
	u.has(frameworkv1.FrameworkAttemptRunning, 1)
	apiserver.Add(u.api, &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mpi"}})
	names := strings.Fields(u.types("get", "-o", "name").out)
	if strings.Join(names, " ") != "framework.frameworkcontroller.microsoft.com/train job.batch.volcano.sh/mpi" {
		t.Fatalf("names are %q", names)
	}
	for _, name := range names {
		u.sees(u.types("get", name), 0)
		u.sees(u.types("why", name), 0)
	}
	for _, verb := range []string{"describe NAME", "history NAME", "top NAME", "wait NAME --for=Running", "start NAME", "stop NAME --dry-run", "scale NAME worker=3 --dry-run=server"} {
		for _, name := range []string{names[0], "framework/train", "a/train"} {
			u.sees(u.types(append(strings.Fields(strings.ReplaceAll(verb, "NAME", name)), "--namespace="+map[bool]string{true: "b", false: "a"}[name == "a/train"])...), 0)
		}
		u.sees(u.types(strings.Fields(strings.ReplaceAll(verb, "NAME", "deployment.apps/train"))...), 2, "kinds are framework, podgroup")
	}
	u.sees(u.types("delete", names[0], "--wait=false"), 0, "framework/train deleted")
}
