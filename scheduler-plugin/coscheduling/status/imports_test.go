// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestTheReporterKnowsNoScheduler: of this project it knows the APIs, their client, how namespaces take turns, and two
// packages of the scheduler's: kube, by which it writes, and news, which decides.
func TestTheReporterKnowsNoScheduler(t *testing.T) {
	const module = "github.com/lockstep-k8s/lockstep/"
	allowed := []string{"apis/scheduling/v1alpha1", "client/applyconfiguration/scheduling/v1alpha1", "client/clientset/versioned", "internal/fair",
		"scheduler-plugin/coscheduling/dialect", "scheduler-plugin/coscheduling/kube", "scheduler-plugin/coscheduling/news"}
	for _, pkg := range imports.Of(t) {
		own, ok := strings.CutPrefix(pkg, module)
		if ok && !slices.Contains(allowed, own) || strings.HasPrefix(pkg, "k8s.io/kube") {
			t.Errorf("the package imports %s", pkg)
		}
	}
}
