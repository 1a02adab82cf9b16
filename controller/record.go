// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// record is what the controller remembers of one Framework between syncs. Only
// the worker that syncs the Framework touches it. All of it may be lost.
type record struct {
	uid types.UID
	// resourceVersion of the Framework after the last write of its status.
	resourceVersion string
	// persisted is the status that the API server has, status is that and what
	// is not yet written.
	persisted, status *frameworkv1.FrameworkStatus
	encoder           statuscodec.Encoder
	// outcomes, deleted and forced are the Snapshot's.
	outcomes        []lifecycle.Outcome
	deleted, forced map[types.UID]bool
	// left are the actions of the last plan that were not yet begun, and decided
	// and generation are when, and of which spec, it was made.
	left       []lifecycle.Action
	decided    time.Time
	generation int64
	// podGroup is the last one written, until the cache is as new.
	podGroup *schedulingv1alpha1.PodGroup
	// events wait for the status that they tell of to be written.
	events []lifecycle.Event

	// dirtySince is when status began to differ from persisted, waveSince when
	// the present wave of such changes began.
	dirtySince, waveSince time.Time
	lastWrite             time.Time
	// writeTook is how long the last write of the status took.
	writeTook time.Duration
	lastSync  time.Time
	// rounds is how many there were since the Framework was last at rest, and
	// unfinished says that the last sync left some to do at once.
	rounds     int
	unfinished bool
	// pace is how many Pods are created at the same time, 0 if not yet known.
	pace int
	// complaint is what was last reported, so that it is reported once.
	complaint string
}

// tasks is the number of tasks, the measure of what a look at the status and a
// write of it cost.
func (r *record) tasks() int {
	if r.status == nil || r.status.Tasks == nil {
		return 0
	}
	return int(r.status.Tasks.Total)
}

// carriesOn says whether what is left of the last plan is worth carrying on with
// before there is another: for as long as all events would be let wait, and only if
// the user has not changed the Framework meanwhile.
func (r *record) carriesOn(entry *frameworkEntry, now time.Time) bool {
	return len(r.left) > 0 && r.generation == entry.Generation && entry.DeletionTimestamp == nil &&
		now.Before(r.decided.Add(r.syncCost()))
}

// syncCost is how much time of a worker a look at all tasks may cost.
func (r *record) syncCost() time.Duration {
	return time.Duration(r.tasks()) * syncCostPerTask
}

// prune forgets deletions of Pods that are gone from the cache.
func (r *record) prune(pods map[string]*corev1.Pod) {
	const slack = 64
	if len(r.deleted)+len(r.forced) <= 2*len(pods)+slack {
		return
	}
	deleted, forced := map[types.UID]bool{}, map[types.UID]bool{}
	for _, pod := range pods {
		if r.deleted[pod.UID] {
			deleted[pod.UID] = true
		}
		if r.forced[pod.UID] {
			forced[pod.UID] = true
		}
	}
	r.deleted, r.forced = deleted, forced
}

// records are the records of all Frameworks.
type records struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]*record
}

// get returns the Framework's record. At first sight it begins with the status
// that the API server has; a Framework that was created anew under the same name
// is seen for the first time again.
func (r *records) get(key cache.ObjectName, entry *frameworkEntry) (*record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec := r.byKey[key]; rec != nil && rec.uid == entry.UID {
		return rec, nil
	}
	rec := &record{
		uid:             entry.UID,
		resourceVersion: entry.ResourceVersion,
		deleted:         map[types.UID]bool{},
		forced:          map[types.UID]bool{},
	}
	if len(entry.storedStatus) > 0 {
		status, err := statuscodec.Decode(entry.storedStatus)
		if err != nil {
			return nil, fmt.Errorf("reading the stored status: %w", err)
		}
		rec.persisted, rec.status = status, status
	}
	if r.byKey == nil {
		r.byKey = map[cache.ObjectName]*record{}
	}
	r.byKey[key] = rec
	return rec, nil
}

// all are the records by Framework.
func (r *records) all() map[cache.ObjectName]*record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.byKey)
}

func (r *records) forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}
