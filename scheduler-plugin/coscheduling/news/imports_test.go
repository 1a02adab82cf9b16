// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/testing/imports"
)

// TestWhatDecidesCannotAct: what is told of a gang is decided by functions that know
// nothing by which they could do something, nor a random number.
func TestWhatDecidesCannotAct(t *testing.T) {
	imports.Only(t,
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types",
		"k8s.io/apimachinery/pkg/util/resourceversion",
		"github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1",
		"github.com/lockstep-k8s/lockstep/internal/times",
		"github.com/lockstep-k8s/lockstep/podgroup",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue",
	)
}
