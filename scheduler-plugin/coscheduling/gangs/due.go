// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Due is what has to be done about gangs that have changed. Gangs only collects it. The caller of Follower.Take does
// it, without the lock of Gangs.
type Due struct {
	// Reports has the gangs that the Reporter must look at.
	Reports []Report
	// Broken has the gangs to dissolve: the rest of the members must be evicted.
	Broken []Broken
	// Elsewhere has the waiting members that another scheduler bound while this scheduler led.
	Elsewhere []Elsewhere
	// Idle has the gangs with waiting members that are not complete.
	Idle []dialect.Key
}

// Report makes the Reporter look at a gang after a time.
type Report struct {
	Gang  dialect.Key
	After time.Duration
}

// Broken is a gang that has lost a member to preemption and can't go on. Rest are the members to evict. They no longer
// count; SetLeaving makes a Pod that could not be evicted count again.
type Broken struct {
	Group *dialect.Group
	Rest  []*corev1.Pod
}

// Elsewhere is a member that another scheduler has bound. Known is when this scheduler first saw the Pod.
type Elsewhere struct {
	Pod   *corev1.Pod
	Known time.Time
}

// due collects what is due. The lock of Gangs guards collected.
type due struct {
	collected Due
	// stirred holds a value if something has changed since the last receive.
	stirred chan struct{}
}

// stir wakes the receiver of stirred. It does not block.
func (d *due) stir() {
	select {
	case d.stirred <- struct{}{}:
	default: // the receiver has not looked since the last time
	}
}

// report makes the Reporter look at a gang after a time.
func (d *due) report(gang dialect.Key, after time.Duration) {
	d.collected.Reports = append(d.collected.Reports, Report{gang, after})
	d.stir()
}

// Follower follows the changes of gangs. It is safe for concurrent use.
type Follower struct {
	Of *Gangs
}

// Stirred returns a channel that has a value if something has changed since the last receive: a gang may be next, a
// reservation may be over, or something is due.
func (f Follower) Stirred() <-chan struct{} { return f.Of.due.stirred }

// Stir wakes the receiver of Stirred.
func (f Follower) Stir() { f.Of.due.stir() }

// Take returns what has become due since the last call.
func (f Follower) Take() Due {
	f.Of.mu.Lock()
	defer f.Of.mu.Unlock()
	taken := f.Of.due.collected
	f.Of.due.collected = Due{}
	return taken
}
