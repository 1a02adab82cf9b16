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

// freeings are the gangs that give devices back. It is safe for concurrent use.
type freeings struct {
	mu sync.Mutex
	// underway has for each of them whether it was to have a cycle meanwhile.
	underway map[dialect.Key]bool
}

// begin says whether a gang may begin to give devices back: it does not do so already.
func (f *freeings) begin(key dialect.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, is := f.underway[key]; is {
		return false
	}
	if f.underway == nil {
		f.underway = make(map[dialect.Key]bool)
	}
	f.underway[key] = false
	return true
}

// hinders says whether a gang can't have a cycle because it gives devices back.
func (f *freeings) hinders(key dialect.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, is := f.underway[key]
	if is {
		f.underway[key] = true
	}
	return is
}

// end ends what begin began, and says whether the gang has missed a cycle.
func (f *freeings) end(key dialect.Key) (missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed = f.underway[key]
	delete(f.underway, key)
	return missed
}

// idle are gangs that are not complete, and have members that wait, with when they are to be
// looked at. It is safe for concurrent use.
type idle struct {
	mu   sync.Mutex
	keys map[dialect.Key]time.Time
}

// add has a gang be looked at.
func (i *idle) add(key dialect.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.put(key, time.Time{})
}

// again has a gang be looked at some time, or before if it is added.
func (i *idle) again(key dialect.Key, at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, is := i.keys[key]; !is {
		i.put(key, at)
	}
}

func (i *idle) put(key dialect.Key, at time.Time) {
	if i.keys == nil {
		i.keys = make(map[dialect.Key]time.Time)
	}
	i.keys[key] = at
}

// take returns those that are to be looked at now.
func (i *idle) take(now time.Time) (due []dialect.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key, at := range i.keys {
		if !at.After(now) {
			due = append(due, key)
			delete(i.keys, key)
		}
	}
	return due
}

// freer has gangs that wait give devices back.
type freer struct {
	sched   *kube.Scheduler
	plugins map[string]*Coscheduling // by scheduler name
	gangs   *gangs.Gangs
	reader  gangs.Reader

	freeings freeings
	idle     idle
	// cycle is held while a gang is planned.
	cycle sync.Mutex
}

// tend looks after the devices of gangs that are not complete, until ctx ends.
func (f *freer) tend(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, key := range f.idle.take(time.Now()) {
			f.cycle.Lock() // the gang may be complete now, and have its cycle
			if waiting := f.reader.IdleMembers(key); len(waiting) > 0 && f.free(ctx, key, waiting) {
				f.idle.again(key, time.Now().Add(heldPeriod))
			}
			f.cycle.Unlock()
		}
	}, idlePeriod)
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
	if len(leftovers) == 0 || !f.freeings.begin(gang) {
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
		if missed := f.freeings.end(gang); missed || len(freed) > 0 {
			f.gangs.Wake(gang)
		}
	}()
	return held
}

// whileFreeing is why a gang has no cycle that gives devices back.
func whileFreeing() place.Shortfall {
	return place.Shortfall{Unready: true, Message: "devices that were left to members are being given back"}
}
