// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Prey is the work that a gang might take.
type Prey struct {
	Now time.Time
	// MinRuntime returns how long a Pod has to run before it may be preempted, if other work can be preempted instead.
	// Nil means 0 for every Pod.
	MinRuntime func(pod *corev1.Pod) time.Duration
	Pods       []*corev1.Pod
	// Units are what may be taken, by the indexes of their Pods.
	Units []Unit
}

// Add adds a Pod that may be taken by itself.
func (p *Prey) Add(priority int32, pod *corev1.Pod) {
	p.Pods = append(p.Pods, pod)
	p.unit(priority, len(p.Pods)-1)
}

// AddEnding adds a Pod that ends by itself after the given time and is not to be evicted.
func (p *Prey) AddEnding(pod *corev1.Pod, ends time.Duration) {
	p.Pods = append(p.Pods, pod)
	p.Units = append(p.Units, Unit{Ends: ends, Lost: Ran(pod, p.Now), Pods: []int{len(p.Pods) - 1}})
}

// AddGang adds Pods of a gang that is disrupted as a whole. Each placed member above the minima is a unit, the youngest
// first; all members together are one more unit.
func (p *Prey) AddGang(group *dialect.Group, placed podgroup.Tally, priority int32, pods []*corev1.Pod) {
	whole := make([]int, len(pods))
	for i := range pods {
		whole[i] = len(p.Pods) + i
	}
	p.Pods = append(p.Pods, pods...)
	slices.SortFunc(whole, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(Ran(p.Pods[a], p.Now), Ran(p.Pods[b], p.Now)),
			-cmp.Compare(len(p.Pods[a].Name), len(p.Pods[b].Name)),
			-cmp.Compare(p.Pods[a].Name, p.Pods[b].Name),
		)
	})
	left := placed.Plus(podgroup.Tally{})
	for _, i := range whole {
		role := group.Key.RoleOf(p.Pods[i])
		if left.Add(role, -1); group.HeldBy(left) {
			p.unit(priority, i)
		} else {
			left.Add(role, 1)
		}
	}
	p.unit(priority, whole...)
	p.Units[len(p.Units)-1].Spares = func(some []int) bool {
		left := placed.Plus(podgroup.Tally{})
		for _, i := range some {
			left.Add(group.Key.RoleOf(p.Pods[i]), -1)
		}
		return group.HeldBy(left)
	}
}

// unit adds a unit of Pods.
func (p *Prey) unit(priority int32, pods ...int) {
	first := p.Pods[pods[0]]
	unit := Unit{Name: first.Namespace + "/" + first.Name, Priority: priority, Pods: pods}
	unit.Young = p.MinRuntime != nil
	for _, i := range pods {
		ran := Ran(p.Pods[i], p.Now)
		unit.Lost = times.Sum(unit.Lost, ran)
		unit.Young = unit.Young && ran < p.MinRuntime(p.Pods[i])
	}
	p.Units = append(p.Units, unit)
}

// Ran returns how long a Pod has run.
func Ran(pod *corev1.Pod, now time.Time) time.Duration {
	if pod.Status.StartTime == nil {
		return 0
	}
	return max(0, now.Sub(pod.Status.StartTime.Time))
}
