// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestGangsActOnNothing: the package knows the APIs and what follows from them, and nothing
// by which it could do something. The scheduler is not among it: whoever is told of Pods and
// cycles needs none.
func TestGangsActOnNothing(t *testing.T) {
	imports.Only(t,
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/api/equality",
		"k8s.io/apimachinery/pkg/types",
		"k8s.io/component-helpers/scheduling/corev1",
		"github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1",
		"github.com/lockstep-k8s/lockstep/internal/podend",
		"github.com/lockstep-k8s/lockstep/internal/times",
		"github.com/lockstep-k8s/lockstep/podgroup",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news",
	)
}
