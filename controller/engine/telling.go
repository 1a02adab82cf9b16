// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// telling counts the events of one owner. Each reason has a limit of its own, so that many events of one reason don't
// suppress those of another. A core has few reasons.
type telling map[string]*toldReason

type toldReason struct {
	limiter *rate.Limiter
	leftOut int
}

// admit reports whether to record an event now. message says how many events of its reason were left out before.
func (t telling) admit(event plan.Event, now time.Time) (message string, told bool) {
	reason := t[event.Reason]
	if reason == nil {
		reason = &toldReason{limiter: rate.NewLimiter(rate.Every(pacing.ToldEvery), pacing.MaxToldInARow)}
		t[event.Reason] = reason
	}
	if !reason.limiter.AllowN(now, 1) {
		reason.leftOut++
		return "", false
	}
	message = event.Message
	if reason.leftOut > 0 {
		message = fmt.Sprintf("%s (%d more of %s were left out before this one)", message, reason.leftOut, event.Reason)
		reason.leftOut = 0
	}
	return message, true
}
