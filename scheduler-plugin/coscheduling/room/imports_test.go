// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestRoomActsOnNothing: the package knows the scheduler's interfaces and the queue, and
// nothing by which it could do something. What those import is not its business.
func TestRoomActsOnNothing(t *testing.T) {
	imports.Only(t,
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types",
		"k8s.io/apimachinery/pkg/util/sets",
		"k8s.io/component-helpers/scheduling/corev1",
		"k8s.io/kube-scheduler/framework",
		"k8s.io/kubernetes/pkg/scheduler/framework",
		"github.com/lockstep-k8s/lockstep/internal/times",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims",
	)
}
