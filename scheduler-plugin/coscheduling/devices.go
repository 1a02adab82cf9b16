// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// A gang that waits holds no devices. A scheduler that died, or a binding that failed, may have
// left some to its members: they tie the members to nodes which may be full by now,
// and keep the devices from others. So a gang for which no place was found and no room is kept
// gives them back, off the scheduling goroutine: one request after the other, each claim
// once. Meanwhile the gang is not planned, by claims that are about to change. So does a gang
// that is not complete, which has no cycle.

const (
	// freeingTime is for how long a gang begins to give back further devices, and so has no cycle.
	freeingTime = 30 * time.Second
	// idlePeriod is how often the devices of gangs are looked after that are not complete.
	idlePeriod = time.Second
	// heldPeriod is after what time it is looked again if such a gang held devices: they could not
	// be given back, or were still reserved for somebody who is gone by then.
	heldPeriod = 5 * time.Second
)

// freer has gangs that wait give devices back.
type freer struct {
	sched   *kube.Scheduler
	plugins map[string]*Coscheduling // by scheduler name
	gangs   *gangs.Gangs
	reader  gangs.Reader

	// underway has each gang that gives devices back, with whether the gang was to have a cycle meanwhile.
	underway sync.Map // of dialect.Key to bool
	// idle has the gangs that are not complete and have members that wait, with when they are to be looked at.
	idle sync.Map // of dialect.Key to time.Time
	// cycle is held while a gang is planned.
	cycle sync.Mutex
}

// tend looks after the devices of gangs that are not complete, until ctx ends.
func (f *freer) tend(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := time.Now()
		f.idle.Range(func(of, at any) bool {
			if at.(time.Time).After(now) || !f.idle.CompareAndDelete(of, at) {
				return true
			}
			key := of.(dialect.Key)
			f.cycle.Lock() // the gang may be complete now, and have its cycle
			defer f.cycle.Unlock()
			if waiting := f.reader.IdleMembers(key); len(waiting) > 0 && f.free(ctx, key, waiting) {
				f.idle.LoadOrStore(key, now.Add(heldPeriod))
			}
			return true
		})
	}, idlePeriod)
}

// hinders reports whether a gang can't have a cycle because it gives devices back.
func (f *freer) hinders(key dialect.Key) bool {
	if f.underway.CompareAndSwap(key, false, true) {
		return true
	}
	_, is := f.underway.Load(key)
	return is
}

// free has the devices given back that were left to members of a gang which wait. It says
// whether members have any, be they given back or not. The caller holds f.cycle.
func (f *freer) free(ctx context.Context, gang dialect.Key, waiting []*corev1.Pod) (held bool) {
	profile := f.plugins[waiting[0].Spec.SchedulerName].handle
	logger := klog.FromContext(ctx)
	leftovers, err := kube.Leftovers(f.sched, profile, waiting)
	if err != nil {
		logger.Error(err, "Looking for devices that were left to a pod group failed")
	}
	held = len(leftovers) > 0 || kube.HaveDevices(profile, waiting)
	if len(leftovers) == 0 {
		return held
	}
	if _, is := f.underway.LoadOrStore(gang, false); is {
		return held
	}
	go func() {
		var freed []*resourcev1.ResourceClaim
		begun := time.Now()
		for _, claim := range leftovers {
			if time.Since(begun) > freeingTime {
				break // the gang is planned, and goes on after that
			}
			ok, err := kube.FreeClaim(ctx, profile, claim)
			if ok {
				freed = append(freed, claim)
			} else if err == nil || retriable(err) { // only the answer to this or the last try may be lost
				kube.AwaitChanged(ctx, profile, claim, kube.DoubtPatience)
			}
			if err != nil {
				logger.Error(err, "Devices stay with a pod group that waits") // it is tried again
				break
			}
		}
		for _, claim := range freed {
			kube.AwaitChanged(ctx, profile, claim, kube.FreedPatience)
		}
		logger.V(2).Info("Pod group has given devices back that it had no use for", "claims", len(freed), "of", len(leftovers))
		if missed, _ := f.underway.LoadAndDelete(gang); missed == true || len(freed) > 0 {
			f.gangs.Wake(gang)
		}
	}()
	return held
}

// whileFreeing is why a gang has no cycle that gives devices back.
func whileFreeing() place.Shortfall {
	return place.Shortfall{Unready: true, Message: "devices that were left to members are being given back"}
}
