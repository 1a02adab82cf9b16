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
)

// A waiting member must hold no devices. It may have some from a scheduler that died or from a binding that failed.
// These devices tie the member to a node that may be full by now, and other Pods can't use them. So members that found no
// place in the gang's cycle give their devices back, unless the members are nominated for nodes. That happens outside of
// the scheduling goroutine: one request after the other, each claim once. Meanwhile the gang has no cycle, as its claims
// are about to change. A gang that is not complete has no cycle, and gives its devices back all the same.

const (
	// freeingTime is how long the devices of one gang are freed at a time; the gang has no cycle meanwhile. A request
	// that has begun is finished.
	freeingTime = 30 * time.Second
	// idlePeriod is how often freer looks for gangs that are not complete and may hold devices.
	idlePeriod = time.Second
	// heldPeriod is the time between two checks of an incomplete gang that held devices at the first check. Freeing
	// them may have failed, or a claim may have been reserved for another Pod, which may be gone by the second check.
	heldPeriod = 5 * time.Second
)

// freer frees the devices of waiting gangs.
type freer struct {
	sched   *kube.Scheduler
	plugins map[string]*Coscheduling // by scheduler name
	gangs   *gangs.Gangs
	reader  gangs.Reader

	// underway has the gangs with devices that are being freed. The value reports whether the gang has missed a cycle
	// because of that.
	underway sync.Map // of dialect.Key to bool
	// idle has the gangs with waiting members that are not complete. The value is when the gang is to be checked for
	// devices.
	idle sync.Map // of dialect.Key to time.Time
	// cycle is held while a gang is planned.
	cycle sync.Mutex
}

// tend frees the devices of gangs that are not complete, until ctx ends.
func (f *freer) tend(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		now := time.Now()
		f.idle.Range(func(of, at any) bool {
			if at.(time.Time).After(now) || !f.idle.CompareAndDelete(of, at) {
				return true
			}
			key := of.(dialect.Key)
			f.cycle.Lock() // the gang may be complete by now, and in its cycle
			defer f.cycle.Unlock()
			if f.free(ctx, key, f.reader.IdleMembers(key)) {
				f.idle.LoadOrStore(key, now.Add(heldPeriod))
			}
			return true
		})
	}, idlePeriod)
}

// hinders reports whether a gang can't have a cycle now because it frees devices.
func (f *freer) hinders(key dialect.Key) bool {
	if f.underway.CompareAndSwap(key, false, true) {
		return true
	}
	_, is := f.underway.Load(key)
	return is
}

// free starts to free the devices that waiting members of a gang hold. `held` reports whether the members held any
// devices, even if these can't be freed. The caller holds f.cycle.
func (f *freer) free(ctx context.Context, gang dialect.Key, waiting []*corev1.Pod) (held bool) {
	if len(waiting) == 0 {
		return false
	}
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
				break // the rest is freed after the gang's next cycle
			}
			ok, err := kube.FreeClaim(ctx, profile, claim)
			if ok {
				freed = append(freed, claim)
			} else if err == nil || retriable(err) { // only the answer to this or the last try may be lost
				kube.AwaitChanged(ctx, profile, claim, kube.DoubtPatience)
			}
			if err != nil {
				logger.Error(err, "Devices stay with a pod group that waits") // free is called again
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

// whileFreeing is why a gang that frees devices has no cycle.
const whileFreeing = "devices that were left to members are being given back"
