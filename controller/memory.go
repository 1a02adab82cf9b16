// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// memory is what the controller remembers of one Framework between syncs. Only
// the worker that syncs the Framework touches it. All of it may be lost.
type memory struct {
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
	// left are the actions of the last plan that were not yet begun, and generation
	// is that of the spec it was made for.
	left       []lifecycle.Action
	generation int64
	// podGroup is the last one written, until the cache is as new.
	podGroup *schedulingv1alpha1.PodGroup
	// events wait for the status that they tell of to be written.
	events []lifecycle.Event
	// complaint is what was last reported, so that it is reported once.
	complaint string
}

// tasks is the number of tasks, the measure of what a look at the status and a
// write of it cost.
func (m *memory) tasks() int {
	if m.status == nil || m.status.Tasks == nil {
		return 0
	}
	return int(m.status.Tasks.Total)
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
func (m *memory) remember(result actionResult) {
	action := result.outcome.Action
	switch action.Kind {
	case lifecycle.DeleteConfigMap, lifecycle.DeletePod, lifecycle.DeleteFramework:
		m.deleted[action.UID] = true
	case lifecycle.ForceDeletePod:
		m.forced[action.UID] = true
	case lifecycle.CreatePodGroup, lifecycle.UpdatePodGroup:
		m.podGroup = result.podGroup
	}
}

// prune forgets deletions of Pods that are gone from the cache.
func (m *memory) prune(pods map[string]*corev1.Pod) {
	const slack = 64
	if len(m.deleted)+len(m.forced) <= 2*len(pods)+slack {
		return
	}
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

// known is what the controller knows of one Framework between syncs.
type known struct {
	memory *memory
	pace   *pacing.Pace
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
	defer k.mu.Unlock()
	if known, ok := k.byKey[key]; ok && known.memory.uid == entry.UID {
		return known, nil
	}
	memory, err := newMemory(entry)
	if err != nil {
		return known{}, err
	}
	if k.byKey == nil {
		k.byKey = map[cache.ObjectName]known{}
	}
	k.byKey[key] = known{memory: memory, pace: &pacing.Pace{}}
	return k.byKey[key], nil
}

func newMemory(entry *frameworkEntry) (*memory, error) {
	memory := &memory{
		uid:             entry.UID,
		resourceVersion: entry.ResourceVersion,
		deleted:         map[types.UID]bool{},
		forced:          map[types.UID]bool{},
	}
	if len(entry.storedStatus) == 0 {
		return memory, nil
	}
	status, err := statuscodec.Decode(entry.storedStatus)
	if err != nil {
		return nil, fmt.Errorf("reading the stored status: %w", err)
	}
	memory.persisted, memory.status = status, status
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
