// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// deletion finds the folder that a documented command deletes.
var deletion = regexp.MustCompile(`(?m)^\$ kubectl delete -k manifests/(\S+)$`)

// TestUninstallingTheProgramsDeletesNoJobs follows docs/install.md: jobs go with their kinds and their
// namespaces, and the commands that come before its warning delete neither.
func TestUninstallingTheProgramsDeletesNoJobs(t *testing.T) {
	document, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, uninstalling, _ := strings.Cut(string(document), "\n## Uninstalling\n")
	harmless, _, warned := strings.Cut(uninstalling, "takes all jobs along")
	if !warned {
		t.Fatal("docs/install.md does not say under Uninstalling what takes all jobs along")
	}
	commands := deletion.FindAllStringSubmatch(harmless, -1)
	if len(commands) != 2 {
		t.Fatalf("docs/install.md has %d harmless deletions under Uninstalling, want those of two programs", len(commands))
	}
	for _, command := range commands {
		objects := objectsOf(t, root+"/"+command[1])
		if crds := of[*apiextensionsv1.CustomResourceDefinition](objects); len(crds) != 0 {
			t.Errorf("%s deletes the kinds %v, and all jobs with them", command[0], names(crds))
		}
		if namespaces := of[*corev1.Namespace](objects); len(namespaces) != 0 {
			t.Errorf("%s deletes the namespaces %v, and all that is in them", command[0], names(namespaces))
		}
	}
}
