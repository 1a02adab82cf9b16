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
	// SetMissing tells of a Pod, as SetPod does, of which it is not known whether it has ended or is gone,
	// until SetPod or DeletePod tells.
	SetMissing(gang dialect.Key, pod *corev1.Pod)
	// Ask tells that somebody of a gang is missing. Its [Join.Question] is to be made now and then, as long as somebody
	// is: after a while in which the watch of ended Pods mostly answers it or, if soon, after one in which some
	// more Pods may come, for which the same is asked.
	Ask(gang dialect.Key, soon bool)
}

// Join joins the two watches. It is safe for concurrent use.
type Join struct {
	gangs Gangs
	keyOf func(pod *corev1.Pod) (dialect.Key, bool)

	mu   sync.Mutex
	pods map[types.UID]*history
	// ended are the Pods that the watch of ended Pods shows, by name.
	ended map[types.NamespacedName]types.UID
	crews map[dialect.Key]*crew
	now   moment
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
	// loss is since when it is missing, 0 if it is not, and there when it was for sure, after its last place was seen.
	loss, there moment
	// noted says that the watch of ended Pods had its time to tell of it: it was missing already when the question was
	// made the last time, or has been shown by that watch.
	noted bool
}

// New makes a Join that knows no Pods. KeyOf is the gang that a Pod names, false if it names none.
// It may come to be another one. Then the Pod is to be shown again.
func New(gangs Gangs, keyOf func(pod *corev1.Pod) (dialect.Key, bool)) *Join {
	return &Join{gangs: gangs, keyOf: keyOf, pods: map[types.UID]*history{}, ended: map[types.NamespacedName]types.UID{},
		crews: map[dialect.Key]*crew{}}
}

// LivedBefore says that the watch of living Pods begins with a Pod, any Pod: it is in the list before that of ended Pods.
func (j *Join) LivedBefore(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lives(pod, false)
}

// Lives says that the watch of living Pods shows a Pod, any Pod, as new or changed.
func (j *Join) Lives(pod *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lives(pod, true)
}

// LivesAgain shows a Pod that lives again, as it is now in the store of the watch of living Pods: it may
// name a gang by now. Now is nil if it is not there. The store is read while nothing is shown, so that
// no older state of the Pod comes after a newer one.
func (j *Join) LivesAgain(now func() *corev1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if pod := now(); pod != nil {
		j.lives(pod, true)
	}
}

// lives shows a Pod that lives, which may arrive at its gang. The caller holds the lock.
func (j *Join) lives(pod *corev1.Pod, arrives bool) {
	h := j.pods[pod.UID]
	_, member := j.keyOf(pod)
	switch {
	case h == nil && !member:
	case h != nil && h.ended && h.left && member:
		// This watch is not behind: it has told before that the Pod does not live. etcd was restored, and the
		// other watch is behind.
		delete(j.ended, nameOf(pod))
		h.ended = false
		j.arrive(pod, h)
		j.show(pod)
		h.lives, h.left = true, false
	case h != nil && (h.ended || h.lives && h.pod == nil):
		h.lives = true // the watch is behind
	case !member:
		j.forget(pod.UID, h)
	default:
		if arrives {
			j.arrive(pod, h)
		}
		j.doubtNamesake(pod)
		h = j.show(pod)
		h.lives, h.left = true, false
	}
}

// arrive has those of a gang be missing that have succeeded, if a Pod that waits is new in it: they may have gone before
// it came. Its history is nil if it has none. The caller holds the lock.
func (j *Join) arrive(pod *corev1.Pod, h *history) {
	gang := j.groupOf(pod)
	if pod.Spec.NodeName != "" || h != nil && h.pod != nil && h.gang == gang && isWaiting(h.pod) {
		return
	}
	c := j.crewOf(gang)
	j.now++
	c.note(arrival{at: j.now, spares: keeperOf(pod)})
	asks := false
	for of, succeeded := range c.succeeded {
		if of != "" && of == c.last.spares {
			continue
		}
		for uid, h := range succeeded {
			if uid != pod.UID {
				h.noted = true
				j.miss(h)
				asks = true
			}
		}
	}
	if asks {
		j.gangs.Ask(gang, true)
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
		h.noted = true
		j.miss(h)
		j.gangs.Ask(h.gang, true)
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
		if h.pod != nil && h.loss == 0 && !final && j.mayHaveGone(h.pod, 0) {
			h.noted = true
			j.miss(h)
			j.gangs.Ask(h.gang, true)
		}
	case h.pod == nil:
		delete(j.pods, pod.UID)
	case pod.Spec.NodeName == "" && (final || !j.gangs.IsAssumed(h.gang, pod)):
		j.forget(pod.UID, h)
	default:
		h.lives, h.left = false, true
		h.noted, h.there = false, 0
		j.miss(h)
		if final {
			h.there = h.loss // otherwise it may have gone before others that were shown came
		}
		j.gangs.Ask(h.gang, false)
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
	if j.isInDoubt(pod, h) {
		h = j.showMissing(pod)
		h.noted = true
		j.gangs.Ask(h.gang, true)
	} else {
		h = j.show(pod)
	}
	h.ended = true
	j.ended[nameOf(pod)] = pod.UID
}

// isInDoubt says whether a Pod that the watch of ended Pods shows may have gone before another one came that waits: that
// watch may be behind. Its history is nil if it has none. The caller holds the lock.
func (j *Join) isInDoubt(pod *corev1.Pod, h *history) bool {
	switch {
	case h == nil || h.pod == nil || h.gang != j.groupOf(pod): // who has come to the gang without being seen may have gone so
		return j.mayHaveGone(pod, 0)
	case h.loss == 0:
		return false
	case h.ended:
		return hasSucceeded(pod)
	default:
		return j.mayHaveGone(pod, h.there)
	}
}

// mayHaveGone says whether a Pod that was there at a moment matters to one that has come since. The caller holds the lock.
func (j *Join) mayHaveGone(pod *corev1.Pod, there moment) bool {
	c := j.crews[j.groupOf(pod)]
	return c != nil && hasSucceeded(pod) && there < c.arrived(pod)
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
	j.leave(h)
	h.ended = false
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
	at     moment
	losses map[types.UID]loss
}

// loss is a Pod in question, and since when it is missing.
type loss struct {
	name  string
	since moment
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
	some := Question{Gang: q.Gang, at: q.at, losses: make(map[types.UID]loss)}
	for uid, of := range q.losses {
		if known(uid) {
			some.losses[uid] = of
		}
	}
	return some
}

// Question is what to ask about a gang now, and whether any of its Pods are missing. It is
// asked about those that were missing the last time already, of most that end the other
// watch tells in a moment; and about those that it has shown.
func (j *Join) Question(gang dialect.Key) (q Question, missing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.crews[gang]
	if c == nil {
		return Question{Gang: gang}, false
	}
	j.now++
	q = Question{Gang: gang, at: j.now, losses: map[types.UID]loss{}}
	for uid, h := range c.missing {
		if h.noted {
			q.losses[uid] = loss{name: h.pod.Name, since: h.loss}
		}
		h.noted = true
	}
	return q, len(c.missing) > 0
}

// Answer takes the answer: all Pods of the gang that have ended, as of a moment after the
// question. What is missing and is not among them is gone. The others have ended, unless somebody has come since
// the question was made. Those that the watch of ended Pods has not shown are missing until it does: only that tells
// when they go. It says whether any are missing.
func (j *Join) Answer(q Question, ended []*corev1.Pod) (missing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	byUID := make(map[types.UID]*corev1.Pod, len(ended))
	for _, pod := range ended {
		if j.groupOf(pod) == q.Gang { // or it is shown as one of another gang
			byUID[pod.UID] = pod
		}
	}
	outdated := false
	for uid, of := range q.losses {
		h := j.pods[uid]
		if h == nil || h.loss != of.since {
			continue
		}
		pod, ok := byUID[uid]
		switch {
		case !ok && h.ended: // the watch of ended Pods is behind
			j.leave(h)
		case !ok:
			j.forget(uid, h)
		case j.mayHaveGone(pod, q.at):
			outdated = true
		case h.ended:
			j.show(pod)
		default:
			h.there = q.at
			j.know(h, pod)
		}
	}
	if outdated {
		j.gangs.Ask(q.Gang, true)
	}
	c := j.crews[q.Gang]
	return c != nil && len(c.missing) > 0
}

// show has the gangs know a Pod as it is, and that it is there. The caller holds the lock.
func (j *Join) show(pod *corev1.Pod) *history {
	h := j.enter(pod)
	j.find(h)
	j.know(h, pod)
	return h
}

// showMissing has the gangs know a Pod as it is, and that it is missing. The caller holds the lock.
func (j *Join) showMissing(pod *corev1.Pod) *history {
	h := j.enter(pod)
	j.crews[h.gang].discount(h)
	h.pod = pod
	j.miss(h)
	return h
}

// enter has a Pod be of the gang that it names, and of none before. The gangs are told next. The caller holds the lock.
func (j *Join) enter(pod *corev1.Pod) *history {
	h := j.pods[pod.UID]
	if h == nil {
		h = &history{}
		j.pods[pod.UID] = h
	}
	gang := j.groupOf(pod)
	if h.gang != gang {
		j.leave(h)
	}
	if h.pod == nil {
		j.crewOf(gang).pods++
		h.pod, h.gang, h.there = pod, gang, 0
	}
	return h
}

// leave has the gang forget a Pod, if it knows it. The caller holds the lock.
func (j *Join) leave(h *history) {
	if h.pod == nil {
		return
	}
	j.find(h)
	c := j.crews[h.gang]
	c.discount(h)
	if c.pods--; c.pods == 0 {
		delete(j.crews, h.gang)
	}
	j.gangs.DeletePod(h.gang, h.pod)
	h.pod = nil
}

// forget has the gangs, and the Join, forget a Pod that they know. The caller holds the lock.
func (j *Join) forget(uid types.UID, h *history) {
	j.leave(h)
	delete(j.pods, uid)
}

// know has the gang of a Pod know it as it is, and that it is there. The caller holds the lock.
func (j *Join) know(h *history, pod *corev1.Pod) {
	c := j.crews[h.gang]
	c.discount(h)
	h.pod = pod
	c.count(h)
	j.gangs.SetPod(h.gang, pod)
}

// miss has the gang of a Pod know that it is missing. The caller holds the lock.
func (j *Join) miss(h *history) {
	c := j.crews[h.gang]
	c.discount(h)
	if h.loss == 0 {
		j.now++
		h.loss = j.now
		c.missing[h.pod.UID] = h
	}
	j.gangs.SetMissing(h.gang, h.pod)
}

// find notes that a Pod is not missing, if it was. The caller holds the lock.
func (j *Join) find(h *history) {
	if h.loss != 0 {
		h.loss = 0
		delete(j.crews[h.gang].missing, h.pod.UID)
	}
}

// crewOf is the crew of a gang, a new one if it has none.
func (j *Join) crewOf(gang dialect.Key) *crew {
	c := j.crews[gang]
	if c == nil {
		c = &crew{missing: map[types.UID]*history{}, succeeded: map[types.UID]map[types.UID]*history{}}
		j.crews[gang] = c
	}
	return c
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (j *Join) groupOf(pod *corev1.Pod) dialect.Key {
	group, _ := j.keyOf(pod)
	return group
}
