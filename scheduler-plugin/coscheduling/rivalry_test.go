// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/rivals"
)

// leaseOf is a Lease that somebody has renewed just now.
func leaseOf(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody"), RenewTime: &metav1.MicroTime{Time: time.Now()}}}
}

// TestASchedulerThatLeadsUnderAServedNameIsARival, but for this one.
func TestASchedulerThatLeadsUnderAServedNameIsARival(t *testing.T) {
	leases := fake.NewClientset(leaseOf("volcano-system", "volcano"), leaseOf("volcano-system", "other"), leaseOf("kube-system", "kube-scheduler")).CoordinationV1()
	r := &rivalry{leases: leases, names: []string{"default-scheduler", "lockstep-scheduler", "volcano"},
		own: types.NamespacedName{Namespace: "kube-system", Name: "kube-scheduler"}}
	r.look(t.Context())
	if got := r.contested(); !slices.Equal(got, []string{"volcano"}) {
		t.Errorf("rivals are known of %v, want of volcano", got)
	}
}

// hangingLeases are Leases of which those of one namespace are never answered for.
type hangingLeases struct {
	coordinationclient.LeasesGetter
	namespace string
}

func (h hangingLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	leases := h.LeasesGetter.Leases(namespace)
	if namespace == h.namespace {
		return hangingLease{leases}
	}
	return leases
}

type hangingLease struct {
	coordinationclient.LeaseInterface
}

func (hangingLease) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestALeaseThatIsNotAnsweredForHidesNoOther.
func TestALeaseThatIsNotAnsweredForHidesNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		leases := fake.NewClientset(leaseOf("volcano-system", "volcano")).CoordinationV1()
		r := &rivalry{leases: hangingLeases{leases, "kube-system"}, names: []string{"default-scheduler", "volcano"}}
		r.look(t.Context())
		if got := r.contested(); !slices.Equal(got, []string{"volcano"}) {
			t.Errorf("rivals are known of %v, want of volcano", got)
		}
	})
}

// TestTheGroupsOfVolcanoAreLeftToItsScheduler while that runs, unless rivals are to be ignored. All
// others are served.
func TestTheGroupsOfVolcanoAreLeftToItsScheduler(t *testing.T) {
	for rivals, want := range map[string][]string{"Refuse": {"own-0"}, "Ignore": {"gang-0", "own-0"}} {
		t.Run(rivals, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				member := func(w *schedulertesting.PodWrapper) { w.Annotation("scheduling.k8s.io/group-name", "gang") }
				w := newWorld(t, all(makeNodes("node", 1, 4), leaseOf("volcano-system", "volcano"), makePod("gang-0", member))...)
				w.args = `{"dialects":{"volcano":{"mode":"On","rivals":"` + rivals + `"}}}`
				w.serveDialect(dialect.Volcano, makeForeignGroup(dialect.Volcano, "gang", 1))
				w.start()
				w.create(makeGroup("own", 1))
				w.create(makePod("own-0", inGroup("own")))
				w.eventually("who may be bound is", func() bool { return slices.Equal(w.bound(), want) })
				w.eventually("the gang has had its turn", func() bool {
					dump, err := gangs.DumpOf(w.engine().gangs)
					return err == nil && !dump.Gangs[dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}].Ready
				})
				if phase, told := w.phaseOf(dialect.Volcano, "gang"), len(want) > 1; (phase != "") != told {
					t.Errorf("the phase of the group is %q, and that it is served is %v", phase, told)
				}
			})
		})
	}
}

// TestAPodThatSomebodyElseHasBoundShowsARival, unless it was known before this scheduler led: then it
// was the one that led before. The clock of who says when it was created may be wrong.
func TestAPodThatSomebodyElseHasBoundShowsARival(t *testing.T) {
	for name, tc := range map[string]struct {
		known time.Duration // after the lead began
		want  []string
	}{
		"it has come since":     {2 * time.Minute, []string{testScheduler}},
		"it was there before":   {-time.Minute, nil},
		"it came with the lead": {time.Minute, nil},
	} {
		for _, skew := range []time.Duration{0, -time.Hour, time.Hour} {
			t.Run(fmt.Sprintf("%s, and the clock of others is %v ahead", name, skew), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					r := &rivalry{handed: &handed{}}
					r.begin()
					known := time.Now().Add(tc.known)
					pod := makePod("gang-0", onNode("node-0"))
					pod.CreationTimestamp = metav1.NewTime(known.Add(skew))
					r.boundElsewhere(t.Context(), pod, known)
					synctest.Wait()
					if got := r.contested(); !slices.Equal(got, tc.want) {
						t.Errorf("rivals are known of %v, want of %v", got, tc.want)
					}
				})
			})
		}
	}
}

// slowVolume is a plugin that takes its time when the Pod is bound that is called late, as one does
// that waits for a volume.
type slowVolume struct {
	reached, done chan struct{}
}

// Name implements fwk.Plugin.
func (slowVolume) Name() string { return "SlowVolume" }

// PreBindPreFlight implements fwk.PreBindPlugin.
func (slowVolume) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// PreBind implements fwk.PreBindPlugin.
func (s slowVolume) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if pod.Name == "late" {
		close(s.reached)
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	}
	return nil
}

// TestAPodThatNamesAGangWhileItIsBoundShowsNoRival: it was placed here, as an ordinary Pod or as a
// member of another gang.
func TestAPodThatNamesAGangWhileItIsBoundShowsNoRival(t *testing.T) {
	for name, options := range map[string][]podOption{"an ordinary one": nil, "a member of another gang": {inGroup("own")}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("own", 1))...)
				slow := slowVolume{make(chan struct{}), make(chan struct{})}
				w.others = []fwk.Plugin{slow}
				w.args = `{"dialects":{"volcano":{"mode":"On"}}}`
				w.serveDialect(dialect.Volcano, makeVolcanoGroup("gang", 1))
				w.start()
				began := time.Now().Add(-time.Hour) // the lead, long before the Pod came
				w.engine().rivalry.began.Store(&began)
				pod := makePod("late", options...)
				w.create(pod)
				<-slow.reached
				key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
				member := func() (gangs.Member, bool) {
					dump, err := gangs.DumpOf(w.engine().gangs)
					if err != nil {
						t.Fatal(err)
					}
					m, ok := dump.Gangs[key].Members[pod.UID]
					return m, ok
				}
				pod.Labels, pod.Annotations = nil, map[string]string{"scheduling.k8s.io/group-name": "gang"}
				if _, err := w.kube.CoreV1().Pods(testNamespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				w.eventually("it is a member", func() bool { _, ok := member(); return ok })
				close(slow.done)
				w.eventually("it is a member with a node", func() bool { m, _ := member(); return m.Pod != nil && m.Pod.Spec.NodeName != "" })
				w.create(makePod("gang-1", func(w *schedulertesting.PodWrapper) { w.Annotation("scheduling.k8s.io/group-name", "gang") }))
				w.eventually("the next member is placed", func() bool { return w.placed("gang-1") == 1 })
				if names := w.engine().rivalry.contested(); len(names) > 0 {
					t.Errorf("rivals are known of %v, and nobody else has bound anything", names)
				}
				w.eventually("nothing is remembered of Pods that are bound", func() bool {
					h := w.engine().handed
					h.mu.Lock()
					defer h.mu.Unlock()
					return len(h.pods) == 0
				})
			})
		})
	}
}

// TestTheGroupsOfARivalAreThoseOfItsName, and all of Volcano's if its scheduler is the rival.
func TestTheGroupsOfARivalAreThoseOfItsName(t *testing.T) {
	for name, tc := range map[string]struct {
		rival string
		pods  []string
		of    dialect.Dialect
		want  bool
	}{
		"Volcano's scheduler":                         {volcanoProfile, []string{testScheduler}, dialect.Volcano, true},
		"a rival of the name in the Pods":             {testScheduler, []string{testScheduler}, dialect.Volcano, true},
		"a rival of another name":                     {testScheduler, []string{volcanoProfile}, dialect.Volcano, false},
		"a rival of another name, and there are none": {testScheduler, nil, dialect.Volcano, false},
		"a group of another dialect":                  {volcanoProfile, []string{volcanoProfile}, dialect.Own, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rivalry{yields: map[dialect.Dialect]bool{dialect.Volcano: true}}
			r.note(t.Context(), rivals.Sign{Name: tc.rival, Other: "somebody", Lasts: time.Minute})
			if got := r.refuses(dialect.Key{Dialect: tc.of, Namespace: testNamespace, Name: "group"}, tc.pods); got != tc.want {
				t.Errorf("the group is left to it: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestABindingStopsNobodyElsesGangs: who may bind Pods of a namespace can bind a member there. Only a Lease, which
// users don't have, is a rival of all.
func TestABindingStopsNobodyElsesGangs(t *testing.T) {
	r := &rivalry{yields: map[dialect.Dialect]bool{dialect.Volcano: true}}
	refuses := func(namespace string) bool {
		return r.refuses(dialect.Key{Dialect: dialect.Volcano, Namespace: namespace, Name: "group"}, []string{volcanoProfile})
	}
	pod := makePod("a-0", func(w *schedulertesting.PodWrapper) { w.SchedulerName(volcanoProfile) })
	pod.Namespace, pod.Spec.NodeName = "mine", "node"
	r.note(t.Context(), rivals.OfBinding(pod))
	if !refuses("mine") || refuses("theirs") {
		t.Errorf("after a binding in mine, gangs of mine are left to a rival: %t, want true; of theirs: %t, want false", refuses("mine"), refuses("theirs"))
	}
	if got := r.contested(); !slices.Equal(got, []string{volcanoProfile}) {
		t.Errorf("it is told that rivals serve %v, want the name of the Pod", got)
	}
	r.note(t.Context(), rivals.Sign{Name: volcanoProfile, Lasts: time.Minute})
	if !refuses("theirs") {
		t.Error("a rival that holds a Lease is none of theirs")
	}
}
