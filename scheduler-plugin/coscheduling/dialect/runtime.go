// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Runtime is how long a gang runs, counted from the time at which its minimum runs. Zero means unknown.
type Runtime struct {
	// Limit is the time after which a controller of Lockstep ends the gang.
	Limit time.Duration
	// Expected is an estimate, at most Limit where there is a Limit.
	Expected time.Duration
}

// ReasonRuntimeNotLimited: the group was not made for a job that Lockstep runs, so nothing enforces the group's
// maxRuntimeSeconds.
const ReasonRuntimeNotLimited = "RuntimeNotLimited"

// runtimeOf returns how long a gang runs, from the group's annotations and the given fields of its spec, with warnings
// about invalid values. limited reports that a controller of Lockstep ends the gang at its limit. If not, the limit
// counts only as an estimate.
func runtimeOf(object metav1.Object, fields podgroup.Runtimes, limited bool) (Runtime, []Warning) {
	known, problems := podgroup.ReadRuntimes(object, fields)
	var warnings []Warning
	if len(problems) > 0 {
		warnings = append(warnings, Warning{Reason: podgroup.ReasonInvalidRuntime, Message: strings.Join(problems, "; ")})
	}
	runtime := Runtime{Limit: secondsOf(known.Max), Expected: secondsOf(known.Expected)}
	if runtime.Expected == 0 {
		runtime.Expected = runtime.Limit
	}
	if runtime.Limit > 0 && !limited {
		runtime.Limit = 0
		warnings = append(warnings, Warning{Reason: ReasonRuntimeNotLimited,
			Message: "no job of Lockstep made this PodGroup, so nothing ends its Pods at the limit of the run time: it counts as an estimate"})
	}
	return runtime, warnings
}

func secondsOf(n *int32) time.Duration {
	return time.Duration(ptr.Deref(n, 0)) * time.Second
}
