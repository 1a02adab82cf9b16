// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// members passes the Pods that name a group on to the gangs, as the informer of all Pods shows them (ADR 71).
type members struct {
	gangs *gangs.Gangs
	// store has all Pods. It is never behind what the informer's handlers have been shown.
	store cache.Store

	mu sync.Mutex
	// gangOf is the gang that knows a Pod. What the Pod names may be another one by now: a dialect was turned on, or
	// what is known of an owner has changed.
	gangOf map[types.UID]dialect.Key
}

func newMembers(all *gangs.Gangs, store cache.Store) *members {
	return &members{gangs: all, store: store, gangOf: make(map[types.UID]dialect.Key)}
}

// watchMembers has the gangs learn of the Pods that name a group. The result is done when they know all that there were at the start.
func (w *watcher) watchMembers() (cache.DoneChecker, error) {
	w.members = newMembers(w.gangs, w.pods.GetStore())
	seen, err := w.pods.AddEventHandler(w.members.handler())
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return seen.HasSyncedChecker(), nil
}

// handler is the handler of the informer of all Pods.
func (m *members) handler() cache.ResourceEventHandler {
	return handlers(m.set, func(before, after *corev1.Pod) {
		if before.UID != after.UID { // the watch was broken
			m.delete(before)
		}
		m.set(after)
	}, m.delete)
}

// set passes on a Pod that is new or has changed.
func (m *members) set(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLocked(pod)
}

func (m *members) setLocked(pod *corev1.Pod) {
	gang, named := m.gangs.KeyOf(pod)
	if before, known := m.gangOf[pod.UID]; known && (!named || before != gang) {
		m.deleteLocked(pod)
	}
	if named {
		m.gangOf[pod.UID] = gang
		m.gangs.SetPod(gang, pod)
	}
}

// delete passes on that a Pod is gone.
func (m *members) delete(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleteLocked(pod)
}

func (m *members) deleteLocked(pod *corev1.Pod) {
	if gang, known := m.gangOf[pod.UID]; known {
		delete(m.gangOf, pod.UID)
		m.gangs.DeletePod(gang, pod)
	}
}

// setAgain passes a Pod on as the store has it now, if it does: the Pod may name another gang by now. The store is read while no
// handler passes anything on, so a Pod that is gone is not passed on after its end.
func (m *members) setAgain(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := inStore(m.store, pod); now != nil {
		m.setLocked(now)
	}
}

// inStore returns a Pod as a store has it, nil if the Pod is gone.
func inStore(store cache.Store, pod *corev1.Pod) *corev1.Pod {
	object, _, err := store.Get(pod)
	if now, ok := object.(*corev1.Pod); err == nil && ok && now.UID == pod.UID {
		return now
	}
	return nil
}
