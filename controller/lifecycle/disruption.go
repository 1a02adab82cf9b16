// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// disruptionOf returns the status's word for what the cluster did to a Pod; "" if the cluster did not end the Pod.
func disruptionOf(verdict podend.Verdict) frameworkv1.Disruption {
	switch verdict.Cause {
	case podend.CausePreempted, podend.CauseDisplaced:
		return frameworkv1.DisruptionPreempted
	case podend.CauseNodeLost, podend.CauseShutdown, podend.CauseTainted:
		return frameworkv1.DisruptionNodeLost
	case podend.CauseEvicted, podend.CauseDrained, podend.CauseDisrupted:
		return frameworkv1.DisruptionEvicted
	case podend.CauseRefused:
		return frameworkv1.DisruptionRefused
	default:
		return ""
	}
}
