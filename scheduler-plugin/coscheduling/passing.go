// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// A gang that waits for the rest of its members may pass a barrier, which holds room back for a gang that
// starves: that one perhaps waits for the end of this. It does so once for each barrier, with no more than it
// has asked to have kept and may have, and few gangs do. So nobody can have the room of a starving gang for the
// word of many groups, or for that of a group that asks for more than there is.

// mostPassing is how many gangs may pass a barrier.
const mostPassing = 10

// passing knows which gangs have passed the barrier that there is.
type passing struct {
	barrier barrierID
	by      map[passer]bool
}

// barrierID is equal for a barrier and what becomes of it when it grows or moves.
type barrierID struct {
	gang  types.UID
	key   dialect.Key
	since time.Time
}

// passer is a gang, and no other one of its name.
type passer struct {
	key dialect.Key
	uid types.UID
}

func idOf(barrier *room.Barrier) barrierID {
	return barrierID{gang: barrier.Gang().UID, key: barrier.Gang().Rank.Key, since: barrier.Since()}
}

func passerOf(view *gangView) passer { return passer{key: view.Key, uid: view.Group.UID} }

// may says whether a gang may pass a barrier.
func (p *passing) may(barrier *room.Barrier, who passer) bool {
	return p.barrier != idOf(barrier) || !p.by[who] && len(p.by) < mostPassing
}

// note records that a gang has passed a barrier.
func (p *passing) note(barrier *room.Barrier, who passer) {
	if id := idOf(barrier); p.by == nil || p.barrier != id {
		p.barrier, p.by = id, make(map[passer]bool)
	}
	p.by[who] = true
}

// toPass is the gang with those of its members that may pass a barrier: what it has asked to have kept for
// them is enough, and what may be kept for it. There is no barrier, nil, if none may.
func (e *engine) toPass(view *gangView) (gangView, *room.Barrier) {
	due := view.Provision
	if due == nil || !due.Started {
		return gangView{}, nil
	}
	others, _ := e.room.ToCome(view.Key.Namespace, view.Key)
	mayHave := due.Rest().AtMost(place.ShareOf(e.snapshot, due.Percent).Less(others))
	for _, claim := range e.room.InOrder() {
		barrier, starves := claim.(*room.Barrier)
		if !starves || !e.passing.may(barrier, passerOf(view)) {
			continue
		}
		pass, left := *view, mayHave
		pass.Waiting, pass.ClassKeys = nil, nil
		for i, pod := range view.Waiting {
			if takes := provision.OfPod(pod).WithoutPods(); takes.Within(left) {
				pass.Waiting, pass.ClassKeys = append(pass.Waiting, pod), append(pass.ClassKeys, view.ClassKeys[i])
				left = left.Less(takes)
			}
		}
		if len(pass.Waiting) > 0 {
			return pass, barrier
		}
	}
	return gangView{}, nil
}
