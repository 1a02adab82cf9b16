// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// memory is what the controller remembers of one Framework between syncs. Only the
// Framework's one sync, or the flush, touches it. All of it may be lost.
type memory struct {
	uid types.UID
	// resourceVersion is the Framework's after our last write or live check. checked is
	// the newest cached version whose status was found to be ours. refused is a version at
	// which a write got 409 although a live GET showed that version: a refusal, not a race.
	resourceVersion, checked, refused string
	// persisted is the status that the API server has, status is that and what
	// is not yet written.
	persisted, status *frameworkv1.FrameworkStatus
	// stored is what was written of persisted: that, or a shortened one. sent are those
	// whose writes have failed since, although the API server may have stored them.
	stored  *frameworkv1.FrameworkStatus
	sent    []*frameworkv1.FrameworkStatus
	encoder statuscodec.Encoder
	// outcomes, deleted, forced, gone and current are the Snapshot's, and seen are its
	// Checked.
	outcomes                    []lifecycle.Outcome
	deleted, forced, gone, seen map[types.UID]bool
	current                     bool
	// strays are the Framework's objects that were found by a live look, *corev1.Pod or
	// *corev1.ConfigMap, until the caches show them or they are gone.
	strays map[types.UID]metav1.Object
	// blocks are the creations that are refused for now, and failed the names of Pods
	// whose creation has failed last.
	blocks map[cause]namedBlock
	failed map[string]bool
	// left are the actions of the last plan that were not yet begun, and generation
	// is that of the spec it was made for.
	left       []lifecycle.Action
	generation int64
	// podGroup is the last one written, until the cache is as new.
	podGroup *schedulingv1alpha1.PodGroup
	// wantedPodGroup is what the last write of a PodGroup was to make of it.
	wantedPodGroup *schedulingv1alpha1.PodGroup
	// events wait for the status that they tell of to be written.
	events []lifecycle.Event
	// deletionTimestamp is since when the Framework is being deleted, if an answer of the
	// API server has told that.
	deletionTimestamp *metav1.Time
	// complaint is what was last reported, so that it is reported once.
	complaint string
	// deletionLogged says that the history has the Framework as one to be deleted.
	deletionLogged bool
}

// tasks is the number of tasks of the status, those that a rescale removes among
// them: the measure of what a look at the status and a write of it cost.
func (m *memory) tasks() int {
	return max(tasksIn(m.status), tasksIn(m.persisted))
}

func tasksIn(status *frameworkv1.FrameworkStatus) int {
	count := 0
	if status != nil {
		for _, role := range status.AttemptStatus.TaskRoleStatuses {
			count += len(role.TaskStatuses)
		}
	}
	return count
}

// carriesOn says whether some of the last plan is left, and was not made obsolete
// by a change of the user.
func (m *memory) carriesOn(entry *frameworkEntry) bool {
	return len(m.left) > 0 && m.generation == entry.Generation && entry.DeletionTimestamp == nil
}

// settled says whether the status that waits to be written is the first that
// shows all tasks running, or all Pods with their addresses: FrameworkBarrier
// waits for these, and lets no task run before.
func (m *memory) settled() bool {
	if m.persisted == nil || m.persisted.Tasks == nil {
		return false
	}
	return m.status.Tasks.Pending == 0 && m.persisted.Tasks.Pending > 0 ||
		located(m.status) && !located(m.persisted)
}

// located says whether the address of each task is known, unless it has ended.
func located(status *frameworkv1.FrameworkStatus) bool {
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			ip := task.AttemptStatus.PodIP
			if task.AttemptStatus.CompletionStatus == nil && (ip == nil || *ip == "") {
				return false
			}
		}
	}
	return true
}

// remember keeps what the next rounds have to know before the caches do.
func (m *memory) remember(r result) {
	if r.outcome != nil {
		m.outcomes = append(m.outcomes, *r.outcome)
	}
	switch r.action.Kind {
	case lifecycle.DeleteConfigMap, lifecycle.DeletePod, lifecycle.DeleteFramework:
		m.deleted[r.action.UID] = true
	case lifecycle.ForceDeletePod:
		m.forced[r.action.UID] = true
	}
	switch {
	case r.podGroup != nil:
		m.podGroup = r.podGroup
	case r.configMap != nil:
		m.strays[r.configMap.UID] = r.configMap
	case r.pod != nil:
		m.strays[r.pod.UID] = r.pod
	case r.gone != "":
		m.gone[r.gone] = true
		delete(m.strays, r.gone)
	}
}

// noteSeen notes objects that were known when the status was found to be the stored one.
func (m *memory) noteSeen(uids []types.UID) {
	for _, uid := range uids {
		m.seen[uid] = true
	}
}

// bury notes the objects that events told the end of.
func (m *memory) bury(departed []departure) {
	for _, object := range departed {
		// A Pod without a node goes at once when it is deleted, without a deletion timestamp.
		if object.certain || m.deleted[object.uid] && object.unbound {
			m.gone[object.uid] = true
			delete(m.strays, object.uid)
		}
	}
}

// pruneSlack is how many entries more than needed are kept before a map is pruned.
const pruneSlack = 64

// prune forgets deletions of Pods that are gone from the cache, that they were seen, and
// the ends of objects that the status does not name any more.
func (m *memory) prune(pods map[string]*corev1.Pod) {
	if len(m.deleted)+len(m.forced) > 2*len(pods)+pruneSlack {
		deleted, forced := map[types.UID]bool{}, map[types.UID]bool{}
		for _, pod := range pods {
			if m.deleted[pod.UID] {
				deleted[pod.UID] = true
			}
			if m.forced[pod.UID] {
				forced[pod.UID] = true
			}
		}
		m.deleted, m.forced = deleted, forced
	}
	if len(m.seen) > 2*len(pods)+pruneSlack {
		seen := map[types.UID]bool{}
		for _, pod := range pods {
			if m.seen[pod.UID] {
				seen[pod.UID] = true
			}
		}
		m.seen = seen
	}
	if len(m.gone) <= 2*m.tasks()+pruneSlack {
		return
	}
	gone := map[types.UID]bool{}
	keep := func(uid *types.UID) {
		if uid != nil && m.gone[*uid] {
			gone[*uid] = true
		}
	}
	keep(m.status.AttemptStatus.ConfigMapUID)
	for _, role := range m.status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			keep(task.AttemptStatus.PodUID)
		}
	}
	m.gone = gone
}

// departure is an object whose deletion an event has told.
type departure struct {
	uid types.UID
	// certain says that it is gone: it was being deleted, or another object has its name.
	// Else it may only have lost the label that the cache selects by. unbound says that it
	// had no node.
	certain, unbound bool
}

// departures are those of one Framework since its last sync. Events add to them while
// a worker takes them.
type departures struct {
	mu   sync.Mutex
	seen []departure
}

func (d *departures) add(departed departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, departed)
}

func (d *departures) take() []departure {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := d.seen
	d.seen = nil
	return seen
}

// known is what the controller knows of one Framework between syncs.
type known struct {
	memory     *memory
	pace       *pacing.Pace[cause]
	departures *departures
}

// knowledge is what the controller knows of all Frameworks.
type knowledge struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]known
}

// of returns what is known of a Framework. At first sight that is the status that
// the API server has; a Framework that was created anew under the same name is
// seen for the first time again.
func (k *knowledge) of(key cache.ObjectName, entry *frameworkEntry) (known, error) {
	k.mu.Lock()
	before := k.byKey[key]
	k.mu.Unlock()
	if before.memory != nil && before.memory.uid == entry.UID {
		return before, nil
	}
	memory, err := newMemory(entry) // Others don't wait while a large status is decoded.
	if err != nil {
		return known{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey == nil {
		k.byKey = map[cache.ObjectName]known{}
	}
	now := known{memory: memory, pace: before.pace, departures: before.departures}
	if before.memory != nil || before.pace == nil { // It was created anew, or is seen for the first time.
		now.pace, now.departures = &pacing.Pace[cause]{}, &departures{}
	}
	k.byKey[key] = now
	return now, nil
}

// departed notes the end of an object of a Framework, if the Framework is known. Of
// one that is not, a look will tell.
func (k *knowledge) departed(key cache.ObjectName, object departure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.byKey[key]; ok {
		known.departures.add(object)
	}
}

// reread forgets what is known of a Framework but for its pace, which goes on: the
// next sync reads the stored status anew. It returns the pace, nil if nothing is known.
func (k *knowledge) reread(key cache.ObjectName) *pacing.Pace[cause] {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.byKey[key]
	if !ok {
		return nil
	}
	known.memory = nil
	k.byKey[key] = known
	return known.pace
}

func newMemory(entry *frameworkEntry) (*memory, error) {
	memory := &memory{
		uid:             entry.UID,
		resourceVersion: entry.ResourceVersion,
		deleted:         map[types.UID]bool{},
		forced:          map[types.UID]bool{},
		gone:            map[types.UID]bool{},
		seen:            map[types.UID]bool{},
		strays:          map[types.UID]metav1.Object{},
		blocks:          map[cause]namedBlock{},
		failed:          map[string]bool{},
	}
	if len(entry.storedStatus) == 0 {
		return memory, nil
	}
	status, err := statuscodec.Decode(entry.storedStatus)
	if err != nil {
		return nil, fmt.Errorf("reading the stored status: %w", err)
	}
	memory.persisted, memory.status, memory.stored = status, status, status
	return memory, nil
}

// all is what is known, by Framework.
func (k *knowledge) all() map[cache.ObjectName]known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.byKey)
}

func (k *knowledge) forget(key cache.ObjectName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byKey, key)
}
