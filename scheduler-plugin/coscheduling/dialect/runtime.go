// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
)

// Runtime is how long a gang runs, counted from when its minimum runs. Zero is unknown.
type Runtime struct {
	// Limit is the time after which the gang is ended. A controller of Lockstep sees to it.
	Limit time.Duration
	// Expected is an estimate, at most Limit where there is one.
	Expected time.Duration
}

// ReasonRuntimeNotLimited: no job of Lockstep made the group, so nothing enforces its maxRuntimeSeconds.
const ReasonRuntimeNotLimited = "RuntimeNotLimited"

// runtimeOf reads how long the gang of a group runs, from fields of its spec and from annotations, and warns of what makes no
// sense. limited says that a controller of Lockstep ends the gang at its limit. Otherwise the limit is an estimate.
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
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}
