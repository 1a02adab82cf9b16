// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

const (
	testScheduler = "lockstep-scheduler"
	testNamespace = "ns"
)

// gangName is the gang that most tests are about.
var gangName = gangNamed("gang")

func gangNamed(name string) dialect.Key {
	return dialect.Key{Namespace: testNamespace, Name: name}
}

// bench is Gangs with a clock in the test's hands, and the reports that they asked for.
type bench struct {
	*Gangs
	Reader
	Cycles
	time   time.Time
	report map[dialect.Key]time.Duration
	// dissolved are the names of the Pods that are to be evicted with others.
	dissolved []string
	// elsewhere are the names of the Pods that somebody else has bound.
	elsewhere []string
	// known is since when the last of them was known.
	known time.Time
	// gone are the Pods that do not exist any more, though that is not heard yet.
	gone map[types.UID]bool
}

// newBench is a bench on which all is seen that existed before, which is nothing.
func newBench() *bench {
	b := newBlindBench()
	b.SetSynced()
	return b
}

// newBlindBench is a bench on which it is not known yet what existed before.
func newBlindBench() *bench {
	b := &bench{
		time:   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		report: map[dialect.Key]time.Duration{},
		gone:   map[types.UID]bool{},
	}
	b.Gangs = New(Config{
		Rules: Rules{
			Serves:     func(name string) bool { return name == testScheduler },
			ClassValue: func(string) (int32, bool) { return 0, false },
			ClassKey: func(pod *corev1.Pod, role string) string {
				b.HasNoPlace(pod) // the lock is free meanwhile: keys take long to make
				return "class of a " + role
			},
		},
		Now: func() time.Time { return b.time },
		Current: func(pod *corev1.Pod) *corev1.Pod {
			if b.gone[pod.UID] {
				return nil
			}
			return pod
		},
	})
	b.Reader, b.Cycles = Reader{Of: b.Gangs}, Cycles{Of: b.Gangs}
	return b
}

// drained returns the bench with all that is due by now noted.
func (b *bench) drained() *bench {
	due := Follower{b.Gangs}.Take()
	for _, r := range due.Reports {
		b.report[r.Gang] = r.After
	}
	for _, broken := range due.Broken {
		for _, pod := range broken.Rest {
			b.dissolved = append(b.dissolved, pod.Name)
		}
	}
	for _, bound := range due.Elsewhere {
		b.elsewhere, b.known = append(b.elsewhere, bound.Pod.Name), bound.Known
	}
	return b
}

// SetGroup makes a PodGroup known, new or changed.
func (b *bench) SetGroup(group *schedulingv1alpha1.PodGroup) {
	b.Gangs.SetGroup(dialect.FromOwn(group))
}

// DeleteGroup has a PodGroup be gone.
func (b *bench) DeleteGroup(group *schedulingv1alpha1.PodGroup) {
	b.Gangs.DeleteGroup(dialect.KeyOfOwn(group), group.UID)
}

// SetPod makes a Pod known to the gang that it names, new or changed.
func (b *bench) SetPod(pod *corev1.Pod) {
	b.Gangs.SetPod(pod)
}

// DeletePod has a Pod be gone from the gang that it names.
func (b *bench) DeletePod(pod *corev1.Pod) {
	b.Gangs.DeletePod(pod)
}

// add makes members known.
func (b *bench) add(pods ...*corev1.Pod) {
	for _, pod := range pods {
		b.SetPod(pod)
	}
}

// cycle begins the cycle of the gang that is next, which has no name if there is none.
func (b *bench) cycle() View {
	view, _ := b.Begin(math.MinInt32, b.time)
	return view
}

// isNext says whether a gang is to have its cycle now.
func (b *bench) isNext(key dialect.Key) bool {
	next, ok := b.queue.Next(b.time)
	return ok && next.Key == key
}

// fail ends a cycle without a place.
func (b *bench) fail(key dialect.Key, uid types.UID, why queue.Refusal, initial, longest time.Duration) {
	b.Refuse(key, uid, why, queue.Terms{Initial: initial, Longest: longest})
}

// assumeAll has the gang's members placed as a cycle does that began just now.
func (b *bench) assumeAll(key dialect.Key, nodes map[types.UID]string) bool {
	return b.Assume(&View{Key: key, Group: b.gangs[key].group}, nodes)
}

// somethingHappens is an event that may help any gang.
func (b *bench) somethingHappens() {
	b.Happened(queue.Anything, func() queue.Event { return queue.Event{Kind: queue.Anything} })
}

// toldWhy is what a gang's conditions are to say now, empty for nothing new.
func (b *bench) toldWhy(key dialect.Key) string {
	gang, _ := b.Look(key)
	conditions, _ := gang.News(b.time, "id")
	if len(conditions) == 0 {
		return ""
	}
	return conditions[0].Message
}

// write has a gang's conditions written, and returns what was.
func (b *bench) write(key dialect.Key) news.Record {
	gang, _ := b.Look(key)
	conditions, _ := gang.News(b.time, "id")
	record := news.Record{Conditions: conditions, At: b.time}
	b.Remember(gang.Group, record)
	return record
}

// unmarked are the Pods of a gang that are to be told something now, and in what time
// others are.
func (b *bench) unmarked(key dialect.Key) ([]types.UID, time.Duration) {
	gang, _ := b.Look(key)
	return gang.Unmarked(b.time)
}

// markOf is what a Pod of the gang "gang" is to be told.
func (b *bench) markOf(pod *corev1.Pod) news.Mark {
	gang, waiting, ok := b.LookAt(gangName, pod.UID)
	if !ok {
		return news.Mark{}
	}
	mark, _ := gang.MarkOf(waiting)
	return mark
}

// capping is what a gang is told if its PriorityClass does not count.
func (b *bench) capping(key dialect.Key) string {
	gang, _ := b.Look(key)
	for _, w := range gang.Warnings() {
		if w.Reason == news.ReasonCapped {
			return w.Message
		}
	}
	return ""
}

// wantCounts checks what the gang "gang" counts, and that its members add up to it.
func (b *bench) wantCounts(t *testing.T, when string, waiting, placed, strangers int) {
	t.Helper()
	g := b.gangs[gangName]
	got := map[string]int{"waiting": int(g.waiting.Total), "placed": int(g.placed.Total), "bound": int(g.bound.Total), "strangers": g.strangers}
	want := map[string]int{"waiting": waiting, "placed": placed, "bound": placed, "strangers": strangers}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want, +got):\n%s", when, diff)
	}
	if what := miscounted(g); what != "" {
		t.Errorf("%s: the gang %s", when, what)
	}
}

// makeGroup makes a PodGroup; change may set more of its spec.
func makeGroup(name string, minMember int32, change ...func(*schedulingv1alpha1.PodGroupSpec)) *schedulingv1alpha1.PodGroup {
	pg := &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: name, UID: types.UID("uid-of-group-" + name), Generation: 1},
		Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: minMember},
	}
	for _, c := range change {
		c(&pg.Spec)
	}
	return pg
}

func ofClass(name string) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = name }
}

// bornAt has a PodGroup created a number of seconds into the year.
func bornAt(seconds int, group *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
	group.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, seconds, 0, time.UTC))
	return group
}

// groupOf makes the PodGroup of an attempt.
func groupOf(attempt types.UID, name string, minMember int32) *schedulingv1alpha1.PodGroup {
	group := makeGroup(name, minMember)
	group.UID = "group-of-" + attempt
	group.OwnerReferences = attemptOwner(attempt)
	return group
}

func attemptOwner(uid types.UID) []metav1.OwnerReference {
	configMap := &metav1.ObjectMeta{Name: "fw-attempt", UID: uid}
	return []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// pods are the Pods of a gang.
func (b *bench) pods(key dialect.Key) (pods []*corev1.Pod) {
	for _, m := range b.gangs[key].members {
		pods = append(pods, m.pod)
	}
	return pods
}

// podOption changes a Pod that is being made.
type podOption func(*schedulertesting.PodWrapper)

// makePod makes a Pod of the scheduler.
func makePod(name string, options ...podOption) *corev1.Pod {
	w := schedulertesting.MakePod().Namespace(testNamespace).Name(name).UID("uid-" + name).SchedulerName(testScheduler)
	for _, o := range options {
		o(w)
	}
	return w.Obj()
}

func inGroup(group string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Label(schedulingv1alpha1.LabelPodGroup, group) }
}

func inRole(role string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Label(schedulingv1alpha1.LabelRole, role) }
}

func onNode(node string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Node(node) }
}

func inPhase(phase corev1.PodPhase) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Phase(phase) }
}

func ofPriority(priority int32) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Priority(priority) }
}

// of makes a Pod one of an attempt.
func of(attempt types.UID) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Pod.OwnerReferences = attemptOwner(attempt) }
}
