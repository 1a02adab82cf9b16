// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// obstacle is why Pods are not created or not placed at present. Users see it in an event, and in the state of a
// Pending Job.
type obstacle struct{ reason, message string }

// obstacleReasons are the reasons that the state of a Pending Job may have while the Job waits.
var obstacleReasons = []string{
	ReasonInvalidJob, ReasonSpecChanged, ReasonPVCError, ReasonPluginError, ReasonFailedCreate, ReasonFailedUpdate,
	ReasonPodGroupPending, ReasonTopologyUnmapped,
}

// obstruct notes an obstacle. The first one counts.
func (d *decision) obstruct(reason, format string, args ...any) {
	if d.obstacle.reason == "" {
		d.obstacle = obstacle{reason, fmt.Sprintf(format, args...)}
	}
}

// checkSpec checks whether the spec is valid and its immutable parts are unchanged. If not, no Pods are created.
func (d *decision) checkSpec() (goOn bool) {
	d.recordHash()
	switch {
	case d.invalid != "":
		d.obstruct(ReasonInvalidJob, "%s", d.invalid)
	case d.recordedHash() != d.hash:
		d.obstruct(ReasonSpecChanged, "The spec was changed after the Job started, in a field other than replicas, minAvailable and priorityClassName; no Pods are created until it is changed back")
	case d.tooLarge != "":
		d.obstruct(ReasonPluginError, "%s", d.tooLarge)
	case d.unmapped != "" && d.spec.NetworkTopology.Mode == batchv1alpha1.NetworkTopologyHard:
		d.obstruct(ReasonTopologyUnmapped, "%s", d.unmapped)
	case d.unmapped != "":
		d.WarnOnce(ReasonTopologyUnmapped, "%s: the Pods may be placed anywhere", d.unmapped)
	}
	return true
}

// recordedHash returns the hash that the immutable parts of the spec had when the Job's first object was created. The
// hash is in the status; for older Jobs, in the PodGroup. If there is none yet, or it has the form of another version
// of this program, recordedHash returns the hash of the present spec.
func (d *decision) recordedHash() string {
	if hash := d.next.ControlledResources[hashOnRecord]; isComparable(hash) {
		return hash
	}
	for _, name := range jobpods.SortedKeys(d.PodGroups) {
		if hash := d.PodGroups[name].Annotations[KeyImmutableHash]; isComparable(hash) {
			return hash
		}
	}
	return d.hash
}

// recordHash writes the hash of the Job's immutable parts into the status. While the Job has no objects yet, a user may
// still change these parts, and then recordHash replaces the hash.
func (d *decision) recordHash() {
	if d.invalid != "" || !isOpen(d.next.State.Phase) {
		return
	}
	hash := d.recordedHash()
	if !d.wasEverMade() {
		hash = d.hash
	}
	if d.next.ControlledResources[hashOnRecord] != hash {
		d.next.ControlledResources = jobpods.With(d.next.ControlledResources, map[string]string{hashOnRecord: hash})
	}
}

// wasEverMade reports whether the Job has, or ever had, Pods or a gang.
func (d *decision) wasEverMade() bool {
	if d.next.Version > 0 || d.next.RetryCount > 0 || len(d.Pods) > 0 || len(d.PodGroups) > 0 {
		return true
	}
	for key := range d.next.ControlledResources {
		if strings.HasPrefix(key, recordPrefix) {
			return true
		}
	}
	return false
}

// isHashWritten reports whether the hash of the Job's immutable parts is in the written status, as it must be before
// the first object is created. If not, this round writes the status.
func (d *decision) isHashWritten() bool {
	if d.Persisted != nil && d.Persisted.ControlledResources[hashOnRecord] == d.hash {
		return true
	}
	d.Persist(plan.PersistSoon)
	return false
}

// tellOfDeletions warns of a Pod that still exists long after a deletion was requested, while the Job waits to replace
// the Pod.
func (d *decision) tellOfDeletions() {
	if isOver(d.next.State.Phase) {
		return
	}
	since := func(pod *corev1.Pod) (time.Time, bool) {
		if pod.DeletionTimestamp == nil || d.Gone[pod.UID] {
			return time.Time{}, false
		}
		return d.since("in deletion "+string(pod.UID), jobpods.DeletionTime(pod)), true
	}
	overdue, next := podend.FirstOverdue(KindPod, d.Pods, since, d.clock)
	d.WakeAt(next)
	if overdue != "" {
		d.WarnOnce(ReasonWaiting, "%s. The Job waits for it", overdue)
	}
}

// explain writes what the Job waits for.
func (d *decision) explain() {
	phase := d.next.State.Phase
	if d.pause {
		return
	}
	d.tellOfDeletions()
	for _, block := range slices.SortedFunc(slices.Values(d.Blocked), func(a, b plan.Block) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		switch {
		case !hasPods(phase), block.Kind == KindCommand, block.Kind == KindPod && block.Verb == plan.Update:
			// A mark, or a claim: this keeps no Pod from being created.
			d.WarnOnce(ReasonFailedUpdate, "%s %s: %s: %s", block.Kind, block.Name, block.Reason, block.Message)
		case block.Verb == plan.Update:
			d.obstruct(ReasonFailedUpdate, "%s %s: %s: %s", block.Kind, block.Name, block.Reason, block.Message)
		default:
			d.obstruct(ReasonFailedCreate, "%s %s: %s: %s", block.Kind, block.Name, block.Reason, block.Message)
		}
	}
	if !isOpen(phase) {
		return
	}
	if d.UnknownFields != "" {
		d.WarnOnce(plan.ReasonUnknownFields, "%s", d.UnknownFields)
	}
	if waits := d.waitingGang(); waits != "" && phase == batchv1alpha1.JobPending {
		d.obstruct(ReasonPodGroupPending, "%s", waits)
	}
	if d.obstacle.reason != "" {
		d.WarnOnce(d.obstacle.reason, "%s", d.obstacle.message)
	}
	state := &d.next.State
	switch {
	case phase != batchv1alpha1.JobPending:
	case d.obstacle.reason != "":
		state.Reason, state.Message = d.obstacle.reason, plan.CutMessage(d.obstacle.message)
	case slices.Contains(obstacleReasons, state.Reason):
		state.Reason, state.Message = "", ""
	}
}
