// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podwatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestNoOrderOfEventsLosesAPod leads random lives: Pods are made, bound, end, are relabelled,
// deleted and made anew under the same name, while two watches show it, each as late as it
// likes, or break and list anew, and somebody asks. A Pod that has a place is never said to
// be gone while it exists; what has ended never lives again; and when all is shown the gangs
// know what there is.
func TestNoOrderOfEventsLosesAPod(t *testing.T) {
	for seed := range uint64(5000) {
		l := newLife(seed)
		for range 60 {
			l.step()
		}
		l.calm()
		if t.Failed() || len(l.wrong) > 0 {
			t.Fatalf("seed %d: %s\n%s", seed, strings.Join(l.wrong, "\n"), strings.Join(l.log, "\n"))
		}
	}
}

// life is an API server, two watches of its Pods, and gangs that are told.
type life struct {
	random *rand.Rand
	join   *Join

	// versions are the states that there have been: all Pods by name.
	versions []map[string]*corev1.Pod
	made     int
	bound    map[types.UID]bool // by the scheduler, which assumes them
	// came is when a Pod has come to a gang first, and gone when it has gone, by version.
	came map[coming]int
	gone map[types.UID]int

	living, ended *watched
	// known is what the gangs know, and doubted who of them is missing.
	known   map[types.UID]*corev1.Pod
	doubted map[types.UID]bool
	missing map[dialect.Key]bool
	asked   []asked
	// listing says that a watch lists anew: what it shows is not all that it has to show.
	listing bool

	log, wrong []string
}

// coming is a Pod, and a gang to which it comes.
type coming struct {
	pod  types.UID
	gang dialect.Key
}

// asked is a question under way, and the answer if the API server has looked already.
type asked struct {
	Question
	looked bool
	found  []*corev1.Pod
}

// watched is a watch, and the store of its informer.
type watched struct {
	selects func(*corev1.Pod) bool
	at      int // the version that it shows
	store   map[string]*corev1.Pod
	set     func(*corev1.Pod)
	drop    func(pod *corev1.Pod, final bool)
}

func newLife(seed uint64) *life {
	l := &life{random: rand.New(rand.NewPCG(seed, 1)), versions: []map[string]*corev1.Pod{{}}, bound: map[types.UID]bool{},
		came: map[coming]int{}, gone: map[types.UID]int{},
		known: map[types.UID]*corev1.Pod{}, doubted: map[types.UID]bool{}, missing: map[dialect.Key]bool{}}
	l.join = New(l, ownLinks)
	// Something is there when the watches begin.
	for range l.random.IntN(8) {
		l.change()
	}
	l.living = &watched{selects: func(pod *corev1.Pod) bool { return !isOver(pod) }, store: map[string]*corev1.Pod{},
		set: l.join.Lives, drop: l.join.LivesNoMore}
	l.ended = &watched{selects: func(pod *corev1.Pod) bool { return isOver(pod) && groupOf(pod).Name != "" }, store: map[string]*corev1.Pod{},
		set: l.join.Ended, drop: func(pod *corev1.Pod, _ bool) { l.join.EndedNoMore(pod) }}
	l.living.set = l.join.LivedBefore
	l.list(l.living)
	l.living.set = l.join.Lives
	for range l.random.IntN(3) {
		l.change()
	}
	l.list(l.ended)
	return l
}

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (l *life) logf(format string, args ...any) { l.log = append(l.log, fmt.Sprintf(format, args...)) }

func (l *life) failf(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	l.logf("WRONG "+format, args...)
}

func (l *life) now() map[string]*corev1.Pod { return l.versions[len(l.versions)-1] }

// exists is the Pod as the API server has it, nil if it is gone.
func (l *life) exists(uid types.UID) *corev1.Pod {
	for _, pod := range l.now() {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// SetPod implements Gangs.
func (l *life) SetPod(gang dialect.Key, pod *corev1.Pod) {
	l.logf("  told %s", describe(groupOf(pod), pod))
	l.hear(gang, pod, false)
}

// hear is told of a Pod.
func (l *life) hear(gang dialect.Key, pod *corev1.Pod, missing bool) {
	if gang != groupOf(pod) {
		l.failf("%s is shown in %s", describe(groupOf(pod), pod), gang.Name)
	}
	if before := l.known[pod.UID]; before != nil {
		if groupOf(before) != groupOf(pod) {
			l.failf("%s changed from %s to %s", pod.UID, groupOf(before).Name, groupOf(pod).Name)
		}
		if isOver(before) && !isOver(pod) {
			l.failf("%s lives again", pod.UID)
		}
	}
	if groupOf(pod).Name == "" {
		l.failf("%s names no group", pod.UID)
	}
	l.known[pod.UID], l.doubted[pod.UID] = pod, missing
	l.count()
}

// count holds who counts against who was there. Whoever waits must not be placed beside one that had gone before it
// came.
func (l *life) count() {
	if l.listing {
		return
	}
	for _, waits := range l.known {
		if isOver(waits) || waits.Spec.NodeName != "" {
			continue
		}
		came := l.came[coming{waits.UID, groupOf(waits)}]
		for _, ended := range l.known {
			gone := l.gone[ended.UID]
			if keeper := podgroup.Keeper(waits); keeper != nil && keeper.UID == controllerOf(ended) {
				continue // nobody deletes the one to create the other
			}
			if ended.Status.Phase == corev1.PodSucceeded && groupOf(ended) == groupOf(waits) && !l.doubted[ended.UID] && 0 < gone && gone < came {
				l.failf("%s counts, which had gone in %d, and %s came in %d", ended.UID, gone, waits.UID, came)
			}
		}
	}
}

// DeletePod implements Gangs.
func (l *life) DeletePod(_ dialect.Key, pod *corev1.Pod) {
	l.logf("  told that %s is gone", describe(groupOf(pod), pod))
	before := l.known[pod.UID]
	if before == nil {
		l.failf("%s is gone, of which nobody has heard", pod.UID)
		return
	}
	placed := before.Spec.NodeName != "" || l.bound[pod.UID]
	if truth := l.exists(pod.UID); truth != nil && placed && groupOf(truth) == groupOf(before) && l.alwaysIn(before) {
		l.failf("%s is gone, they say, but it is %s", pod.UID, describe(groupOf(truth), truth))
	}
	delete(l.known, pod.UID)
	delete(l.doubted, pod.UID)
}

// alwaysIn says whether a Pod has never left the group that it names. One that has, and came
// back, may be shown to leave.
func (l *life) alwaysIn(pod *corev1.Pod) bool {
	for _, version := range l.versions {
		if was := version[pod.Name]; was != nil && was.UID == pod.UID && groupOf(was) != groupOf(pod) {
			return false
		}
	}
	return true
}

// IsAssumed implements Gangs.
func (l *life) IsAssumed(_ dialect.Key, pod *corev1.Pod) bool { return l.bound[pod.UID] }

// SetMissing implements Gangs.
func (l *life) SetMissing(gang dialect.Key, pod *corev1.Pod) {
	l.logf("  told that %s is missing", describe(groupOf(pod), pod))
	l.hear(gang, pod, true)
}

// Ask implements Gangs.
func (l *life) Ask(gang dialect.Key, _ bool) { l.missing[gang] = true }

func (l *life) step() {
	switch n := l.random.IntN(20); {
	case n < 7:
		l.change()
	case n < 11:
		l.show(l.living)
	case n < 15:
		l.show(l.ended)
	case n < 16:
		l.list(l.living)
	case n < 17:
		l.list(l.ended)
	case n < 18:
		l.ask()
	case n < 19:
		l.look()
	default:
		l.answer()
	}
	l.count()
}

// change changes a Pod, or makes or deletes one.
func (l *life) change() {
	next := maps.Clone(l.now())
	name := string(rune('a' + l.random.IntN(3)))
	pod := next[name]
	if pod == nil {
		l.made++
		pod = makePod(fmt.Sprintf("%s%d", name, l.made), l.group(), "", corev1.PodPending)
		pod.Name = name
		pod.OwnerReferences, pod.Annotations = l.controller()
		next[name] = pod
	} else {
		pod = pod.DeepCopy()
		next[name] = pod
		switch n := l.random.IntN(10); {
		case n < 1:
			delete(next, name)
		case n < 2:
			group := makePod("", l.group(), "", "")
			pod.Labels = group.Labels
		case isOver(pod):
			delete(next, name)
		case n < 3:
			pod.Status.Phase = corev1.PodFailed
		case pod.Spec.NodeName == "":
			pod.Spec.NodeName = "node"
			// The scheduler binds what it knows to wait.
			if known := l.known[pod.UID]; known != nil && known.Spec.NodeName == "" && !isOver(known) {
				l.bound[pod.UID] = true
			}
		case pod.Status.Phase == corev1.PodPending:
			pod.Status.Phase = corev1.PodRunning
		default:
			pod.Status.Phase = corev1.PodSucceeded
		}
	}
	l.versions = append(l.versions, next)
	if at := (coming{pod.UID, groupOf(pod)}); l.came[at] == 0 {
		l.came[at] = len(l.versions) - 1
	}
	if next[name] == nil {
		l.gone[pod.UID] = len(l.versions) - 1
	}
	if next[name] == nil {
		l.logf("%d: %s is deleted", len(l.versions)-1, pod.UID)
	} else {
		l.logf("%d: %s", len(l.versions)-1, describe(groupOf(pod), pod))
	}
}

func (l *life) group() string {
	return []string{"gang", "gang", "gang", "other", ""}[l.random.IntN(5)]
}

// controller is that of a Pod, if it has one, and what says whether its Pods are kept.
func (l *life) controller() ([]metav1.OwnerReference, map[string]string) {
	kind := []string{"", "", "", "Job", "Job", "ConfigMap"}[l.random.IntN(6)]
	version, uid := map[string]string{"Job": "batch/v1", "ConfigMap": "v1"}[kind], types.UID(fmt.Sprint(kind, l.random.IntN(2)))
	if kind == "" {
		return nil, nil
	}
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, UID: uid, Controller: ptr.To(true)}}, map[string]string{frameworkv1.KeyTaskAttemptID: fmt.Sprint(l.random.IntN(2))}
}

// show has a watch show the next version.
func (l *life) show(w *watched) {
	if w.at == len(l.versions)-1 {
		return
	}
	w.at++
	before, after := l.versions[w.at-1], l.versions[w.at]
	for _, name := range slices.Sorted(maps.Keys(l.either(before, after))) {
		was, is := before[name], after[name]
		if was == is {
			continue
		}
		selected, selects := was != nil && w.selects(was), is != nil && w.selects(is)
		switch {
		case selects:
			l.logf("%s shows %s", l.name(w), describe(groupOf(is), is))
			w.store[name] = is
			w.set(is)
		case selected:
			l.logf("%s shows no more %s", l.name(w), describe(groupOf(was), was))
			delete(w.store, name)
			w.drop(was, true)
		}
	}
}

// list has a watch break and list anew.
func (l *life) list(w *watched) {
	l.listing = true
	defer func() { l.listing = false }()
	w.at = len(l.versions) - 1
	l.logf("%s lists anew", l.name(w))
	old := w.store
	w.store = map[string]*corev1.Pod{}
	for name, pod := range l.now() {
		if w.selects(pod) {
			w.store[name] = pod
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if w.store[name] == nil {
			w.drop(old[name], false)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.store)) {
		if was := old[name]; was != nil && was.UID != w.store[name].UID {
			w.drop(was, false)
		}
		w.set(w.store[name])
	}
}

func (l *life) either(a, b map[string]*corev1.Pod) map[string]*corev1.Pod {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func (l *life) name(w *watched) string {
	if w == l.living {
		return "the watch of living Pods"
	}
	return "the watch of ended Pods"
}

// ask begins to ask about the gangs of which somebody is missing.
func (l *life) ask() {
	for _, name := range []string{"gang", "other"} {
		gang := dialect.Key{Namespace: "ns", Name: name}
		q, missing := l.join.Question(gang)
		if missing && !l.missing[gang] {
			l.failf("somebody of %s is missing, and nobody was told", name)
		}
		if !missing {
			delete(l.missing, gang)
		}
		if !q.Empty() {
			l.asked = append(l.asked, asked{Question: q})
		}
	}
}

// look has the API server answer a question.
func (l *life) look() {
	for i := range l.asked {
		if q := &l.asked[i]; !q.looked {
			q.looked = true
			for _, pod := range l.now() {
				if groupOf(pod) == q.Gang && l.ended.selects(pod) {
					q.found = append(q.found, pod)
				}
			}
			return
		}
	}
}

// answer has an answer arrive, in any order.
func (l *life) answer() {
	if len(l.asked) == 0 {
		return
	}
	i := l.random.IntN(len(l.asked))
	q := l.asked[i]
	if !q.looked {
		return
	}
	l.asked = slices.Delete(l.asked, i, i+1)
	l.logf("somebody hears that %d of %s have ended", len(q.found), q.Gang.Name)
	l.join.Answer(q.Question, q.found)
}

// calm has everything be shown and answered, and holds what the gangs know against what is.
func (l *life) calm() {
	for l.living.at < len(l.versions)-1 || l.ended.at < len(l.versions)-1 {
		l.show(l.living)
		l.show(l.ended)
	}
	for range 5 {
		l.ask()
		for range len(l.asked) {
			l.look()
		}
		for range 10 {
			l.answer()
		}
	}
	for _, name := range []string{"gang", "other"} {
		if _, missing := l.join.Question(dialect.Key{Namespace: "ns", Name: name}); missing {
			l.failf("somebody of %s is missing for ever", name)
		}
	}
	members := 0
	for _, pod := range l.now() {
		if groupOf(pod).Name == "" {
			continue
		}
		members++
		if known := l.known[pod.UID]; known == nil || describe(groupOf(known), known) != describe(groupOf(pod), pod) {
			l.failf("they know %v, and it is %s", known, describe(groupOf(pod), pod))
		}
	}
	if members != len(l.known) {
		l.failf("they know %d Pods, and there are %d", len(l.known), members)
	}
	if len(l.join.pods) > len(l.known)+len(l.living.store) {
		l.failf("it remembers %d Pods, and there are %d", len(l.join.pods), len(l.known))
	}
}
