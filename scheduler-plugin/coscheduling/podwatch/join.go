// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Gangs are told what becomes of the Pods that name a PodGroup, one after the other. They
// must not call the Join.
type Gangs interface {
	// SetPod tells of a Pod of a gang that is new or has changed. It is one of the same gang as
	// before.
	SetPod(gang dialect.Key, pod *corev1.Pod)
	// DeletePod tells that a Pod is gone, or is one of the gang no more.
	DeletePod(gang dialect.Key, pod *corev1.Pod)
	// IsAssumed says whether a Pod was given a node that its last state may not show.
	IsAssumed(gang dialect.Key, pod *corev1.Pod) bool
	// SetMissing tells that it is not known whether a Pod has ended or is gone, until SetPod
	// or DeletePod tells. The [Join.Question] of its gang is to be made now and then, as
	// long as somebody is missing.
	SetMissing(gang dialect.Key, pod *corev1.Pod)
}

// Join joins the two watches. It is safe for concurrent use.
type Join struct {
	gangs Gangs
	keyOf func(pod *corev1.Pod) (dialect.Key, bool)

	mu   sync.Mutex
	pods map[types.UID]*history
	// ended are the Pods that the watch of ended Pods shows, by name.
	ended map[types.NamespacedName]types.UID
	// missing are the Pods that are missing, by gang.
	missing map[dialect.Key]map[types.UID]*history
	losses  int
}

// history is what is known of a Pod that names a PodGroup.
//
// Invariant: it lives, has ended, or is missing. If pod is nil it is gone, and a watch that is
// behind shows it still.
type history struct {
	pod *corev1.Pod // as the gangs know it
	// gang is the one whose the Pod is as the gangs know it. What the Pod names may be another one by now: a
	// dialect was turned on, or what is known of an owner has changed.
	gang dialect.Key
	// lives and ended say in which watch it is.
	lives, ended bool
	// left says that the watch of living Pods has shown it, and then not any more.
	left bool
	// loss is the number of the time that it is missing, 0 if it is not.
	loss int
	// noted says that it was missing already when the question was made the last time.
	noted bool
}

// New makes a Join that knows no Pods. KeyOf is the gang that a Pod names, false if it names none.
// It may come to be another one. Then the Pod is to be shown again.
func New(gangs Gangs, keyOf func(pod *corev1.Pod) (dialect.Key, bool)) *Join {
	return &Join{gangs: gangs, keyOf: keyOf, pods: map[types.UID]*history{}, ended: map[types.NamespacedName]types.UID{},
		missing: map[dialect.Key]map[types.UID]*history{}}
}

// Lives says that the watch of living Pods shows a Pod, any Pod, as new or changed.
func (j *Join) Lives(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lives(pod)
}

// LivesAgain shows a Pod that lives again, as it is now in the store of the watch of living Pods: it may
// name a gang by now. Now is nil if it is not there. The store is read while nothing is shown, so that
// no older state of the Pod comes after a newer one.
func (j *Join) LivesAgain(now func() *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if pod := now(); pod != nil {
		j.lives(pod)
	}
}

// lives shows a Pod that lives. The caller holds the lock.
func (j *Join) lives(pod *corev1.Pod) {
	h := j.pods[pod.UID]
	_, member := j.keyOf(pod)
	switch {
	case h == nil && !member:
	case h != nil && h.ended && h.left && member:
		// This watch is not behind: it has told before that the Pod does not live. etcd was restored, and the
		// other watch is behind.
		delete(j.ended, nameOf(pod))
		h.ended = false
		j.show(pod)
		h.lives, h.left = true, false
	case h != nil && (h.ended || h.lives && h.pod == nil):
		h.lives = true // the watch is behind
	case !member:
		j.forget(pod.UID, h)
	default:
		j.doubtNamesake(pod)
		h = j.show(pod)
		h.lives, h.left = true, false
	}
}

// doubtNamesake has a Pod be missing that has ended and has the name of one that lives: one of
// them is gone. The caller holds the lock.
func (j *Join) doubtNamesake(pod *corev1.Pod) {
	uid, ok := j.ended[nameOf(pod)]
	if !ok || uid == pod.UID {
		return
	}
	if h := j.pods[uid]; h != nil && h.pod != nil && h.loss == 0 {
		j.miss(uid, h)
	}
}

// LivesNoMore says that the watch of living Pods does not show a Pod any more. If final,
// the Pod is as it was at the end of that; otherwise it may have changed unseen.
func (j *Join) LivesNoMore(pod *corev1.Pod, final bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.pods[pod.UID]
	switch {
	case h == nil || !h.lives:
	case h.ended:
		h.lives, h.left = false, true
	case h.pod == nil:
		delete(j.pods, pod.UID)
	case pod.Spec.NodeName == "" && (final || !j.gangs.IsAssumed(h.gang, pod)):
		j.forget(pod.UID, h)
	default:
		h.lives, h.left = false, true
		j.miss(pod.UID, h)
	}
}

// Ended says that the watch of ended Pods shows a Pod, any Pod, as new or changed. There may be
// several such watches, which show a Pod more than once.
func (j *Join) Ended(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.pods[pod.UID]
	if _, member := j.keyOf(pod); !member {
		if h != nil && h.ended {
			j.endedNoMore(pod, h)
		}
		return
	}
	if h != nil && h.ended && h.pod == nil {
		return // it is gone, and the watch is behind
	}
	doubted := h != nil && h.ended && h.loss != 0
	h = j.show(pod)
	h.ended = true
	j.ended[nameOf(pod)] = pod.UID
	if doubted {
		j.miss(pod.UID, h)
	}
}

// EndedNoMore says that the watch of ended Pods does not show a Pod any more.
func (j *Join) EndedNoMore(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.pods[pod.UID]
	if h == nil || !h.ended {
		return
	}
	if h.pod != nil && j.groupOf(h.pod) != j.groupOf(pod) {
		return // another watch shows it as one of another gang
	}
	j.endedNoMore(pod, h)
}

// endedNoMore has a Pod that has ended be gone. The caller holds the lock.
func (j *Join) endedNoMore(pod *corev1.Pod, h *history) {
	if h.pod != nil {
		j.find(pod.UID, h)
		j.gangs.DeletePod(h.gang, h.pod)
	}
	h.ended, h.pod = false, nil
	if j.ended[nameOf(pod)] == pod.UID {
		delete(j.ended, nameOf(pod))
	}
	if !h.lives {
		delete(j.pods, pod.UID)
	}
}

// Question is what to ask the API server: which Pods of a gang have ended. It holds those
// of which it is to be known.
type Question struct {
	Gang   dialect.Key
	losses map[types.UID]loss
}

// loss is a Pod in question, and the number of the time that it is missing.
type loss struct {
	name   string
	number int
}

// Empty says whether there is nothing to ask yet.
func (q Question) Empty() bool {
	return len(q.losses) == 0
}

// Names are the names of the Pods in question, by UID.
func (q Question) Names() map[types.UID]string {
	names := make(map[types.UID]string, len(q.losses))
	for uid, of := range q.losses {
		names[uid] = of.name
	}
	return names
}

// About is the question about some of its Pods alone: those of which the API server has said what
// has become of them.
func (q Question) About(known func(uid types.UID) bool) Question {
	some := Question{Gang: q.Gang, losses: make(map[types.UID]loss)}
	for uid, of := range q.losses {
		if known(uid) {
			some.losses[uid] = of
		}
	}
	return some
}

// Question is what to ask about a gang now, and whether any of its Pods are missing. It is
// asked about those that were missing the last time already: of most that end, the other
// watch tells in a moment.
func (j *Join) Question(gang dialect.Key) (q Question, missing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q = Question{Gang: gang, losses: map[types.UID]loss{}}
	for uid, h := range j.missing[gang] {
		if h.noted {
			q.losses[uid] = loss{name: h.pod.Name, number: h.loss}
		}
		h.noted = true
	}
	return q, len(j.missing[gang]) > 0
}

// Answer takes the answer: all Pods of the gang that have ended, as of a moment after the
// question. What is missing and is not among them is gone. The others have ended, and
// are missing until the watch of ended Pods shows them: only that tells when they go. It says
// whether any are.
func (j *Join) Answer(q Question, ended []*corev1.Pod) (missing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	byUID := make(map[types.UID]*corev1.Pod, len(ended))
	for _, pod := range ended {
		if j.groupOf(pod) == q.Gang { // or it is shown as one of another gang
			byUID[pod.UID] = pod
		}
	}
	for uid, of := range q.losses {
		h := j.pods[uid]
		if h == nil || h.loss != of.number {
			continue
		}
		pod, ok := byUID[uid]
		switch {
		case ok && h.ended:
			j.show(pod)
		case ok:
			h.pod = pod
			j.gangs.SetPod(h.gang, pod)
		case h.ended: // the watch of ended Pods is behind
			j.find(uid, h)
			j.gangs.DeletePod(h.gang, h.pod)
			h.pod = nil
		default:
			j.forget(uid, h)
		}
	}
	return len(j.missing[q.Gang]) > 0
}

// show has the gangs know a Pod as it is. The caller holds the lock.
func (j *Join) show(pod *corev1.Pod) *history {
	h := j.pods[pod.UID]
	if h == nil {
		h = &history{}
		j.pods[pod.UID] = h
	}
	j.find(pod.UID, h)
	gang := j.groupOf(pod)
	if h.pod != nil && h.gang != gang {
		j.gangs.DeletePod(h.gang, h.pod)
	}
	h.pod, h.gang = pod, gang
	j.gangs.SetPod(gang, pod)
	return h
}

// forget has the gangs, and the Join, forget a Pod that they know. The caller holds the lock.
func (j *Join) forget(uid types.UID, h *history) {
	j.find(uid, h)
	delete(j.pods, uid)
	j.gangs.DeletePod(h.gang, h.pod)
}

// miss notes that a Pod is missing. The caller holds the lock.
func (j *Join) miss(uid types.UID, h *history) {
	j.losses++
	h.loss, h.noted = j.losses, false
	if j.missing[h.gang] == nil {
		j.missing[h.gang] = map[types.UID]*history{}
	}
	j.missing[h.gang][uid] = h
	j.gangs.SetMissing(h.gang, h.pod)
}

// find notes that a Pod is not missing, if it was. The caller holds the lock.
func (j *Join) find(uid types.UID, h *history) {
	if h.loss == 0 {
		return
	}
	h.loss = 0
	if delete(j.missing[h.gang], uid); len(j.missing[h.gang]) == 0 {
		delete(j.missing, h.gang)
	}
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (j *Join) groupOf(pod *corev1.Pod) dialect.Key {
	group, _ := j.keyOf(pod)
	return group
}
