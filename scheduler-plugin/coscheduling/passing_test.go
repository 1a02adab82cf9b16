// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// TestABarrierIsPassedByFew: each gang does so once, ten do at most, and the next barrier is another one.
func TestABarrierIsPassedByFew(t *testing.T) {
	var p passing
	gang, now := room.Gang{UID: "starving"}, time.Unix(1000, 0)
	barrier := room.NewBarrier(gang, nil, nil, time.Minute, now)
	for i := range mostPassing {
		who := passer{uid: types.UID(fmt.Sprint(i))}
		if !p.may(barrier, who) {
			t.Errorf("gang %d may not pass", i)
		}
		p.note(barrier, who)
		if p.may(barrier.MovedTo(gang, nil, nil), who) {
			t.Errorf("gang %d may pass a second time, when the barrier has moved", i)
		}
	}
	if p.may(barrier, passer{uid: "one more"}) {
		t.Error("one more may pass")
	}
	if !p.may(room.NewBarrier(gang, nil, nil, time.Minute, now.Add(time.Hour)), passer{uid: "0"}) {
		t.Error("a gang may not pass the next barrier")
	}
}
