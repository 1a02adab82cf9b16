// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	lockstepfake "github.com/lockstep-k8s/lockstep/client/clientset/versioned/fake"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// gangOf makes a gang that needs two members, and has one.
func gangOf(change ...func(*news.Gang)) news.Gang {
	g := news.Gang{
		Key: dialect.Key{Namespace: "ns", Name: "gang"},
		Group: &dialect.Group{
			Key: dialect.Key{Namespace: "ns", Name: "gang"}, UID: "uid-of-gang", Generation: 5,
			Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 2}},
		},
		Waiting: podgroup.Tally{Total: 1},
	}
	for _, c := range change {
		c(&g)
	}
	return g
}

func complete(g *news.Gang) { g.Waiting.Total = 2 }
func refused(g *news.Gang)  { g.Refusal = &queue.Refusal{Message: "no room"} }

// reporting is a Reporter that runs on an API server that takes what is written, and knows
// one gang.
type reporting struct {
	*Reporter
	kube *fake.Clientset
	// others have the groups of other dialects.
	others *dynamicfake.FakeDynamicClient
	// refuse has writes of conditions fail with its errors, one after the other.
	refuse   []error
	writes   int
	recorder *events.FakeRecorder

	mu   sync.Mutex
	gang news.Gang
}

// report runs a test with a Reporter that was asked to report on a gang of Pods.
func report(t *testing.T, gang news.Gang, refuse []error, test func(t *testing.T, r *reporting), pods ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &reporting{kube: fake.NewClientset(), others: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), otherGroup()), refuse: refuse, recorder: events.NewFakeRecorder(100), gang: gang}
		for _, name := range pods {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
			if err := r.kube.Tracker().Add(pod); err != nil {
				t.Fatal(err)
			}
			r.gang.Pods = append(r.gang.Pods, news.Pod{Pod: pod, Since: time.Now()})
		}
		client := lockstepfake.NewSimpleClientset()
		client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.writes++
			if r.writes <= len(r.refuse) {
				return true, nil, r.refuse[r.writes-1]
			}
			return true, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "10"}}, nil
		})
		r.Reporter = NewReporter(r, client, r.others, r.kube, r.recorder, func() bool { return false })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		r.Report(gang.Key, 0)
		test(t, r)
		cancel()
		synctest.Wait()
	})
}

// Look implements Gangs.
func (r *reporting) Look(dialect.Key) (news.Gang, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gang, true
}

// LookAt implements Gangs. Unlike Look, it shows what was written to the Pod.
func (r *reporting) LookAt(_ dialect.Key, pod types.UID) (news.Gang, news.Pod, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.gang.Pods, func(p news.Pod) bool { return p.Pod.UID == pod })
	if i < 0 {
		return news.Gang{}, news.Pod{}, false
	}
	p := r.gang.Pods[i]
	object, err := r.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ns", p.Pod.Name)
	if err != nil {
		return news.Gang{}, news.Pod{}, false
	}
	p.Pod = object.(*corev1.Pod)
	return r.gang, p, true
}

// Remember implements Gangs.
func (r *reporting) Remember(_ *dialect.Group, record news.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gang.Record = record
}

// told are the reasons for which Pods wait, by name, as far as they were told.
func (r *reporting) told(t *testing.T) map[string]string {
	t.Helper()
	pods, err := r.kube.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]string)
	for _, pod := range pods.Items {
		for _, c := range pod.Status.Conditions {
			told[pod.Name] = c.Reason
		}
	}
	return told
}

// patches is how often Pods were told something.
func (r *reporting) patches() (n int) {
	for _, action := range r.kube.Actions() {
		if action.Matches("patch", "pods/status") {
			n++
		}
	}
	return n
}

// rest lets the Reporter work for a while.
func (r *reporting) rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// events are those recorded since it was asked last.
func (r *reporting) events() (all []string) {
	for {
		select {
		case event := <-r.recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

// TestWhatIsKnownOfAGangIsWrittenOnce, however often it is asked for: its conditions, the
// marks of Pods and an event.
func TestWhatIsKnownOfAGangIsWrittenOnce(t *testing.T) {
	report(t, gangOf(complete, refused), nil, func(t *testing.T, r *reporting) {
		synctest.Wait()
		r.Report(r.gang.Key, 0)
		r.rest(time.Minute)
		if r.writes != 1 {
			t.Errorf("conditions were written %d times, want once", r.writes)
		}
		if diff := cmp.Diff(map[string]string{"a": "Unschedulable", "b": "Unschedulable"}, r.told(t)); diff != "" {
			t.Errorf("what Pods are told (-want, +got):\n%s", diff)
		}
		if n := r.patches(); n != 2 {
			t.Errorf("two Pods were told something %d times, want each once", n)
		}
		waits := "Warning FailedScheduling there is no room for all of PodGroup gang; its conditions say what is missing"
		if diff := cmp.Diff([]string{"Warning NotEnoughResources no room", waits, waits}, r.events()); diff != "" {
			t.Errorf("events (-want, +got):\n%s", diff)
		}
	}, "a", "b")
}

// TestWhatCouldNotBeWrittenIsTriedAgain, unless the group is gone or another one has its
// name.
func TestWhatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	group := schedulingv1alpha1.Resource("podgroups")
	tests := map[string]struct {
		refuse []error
		want   int // writes
		// wantTold says that the conditions were written in the end.
		wantTold bool
	}{
		"the API server fails":       {refuse: []error{errors.New("down"), errors.New("down")}, want: 3, wantTold: true},
		"the group is gone":          {refuse: []error{apierrors.NewNotFound(group, "gang")}, want: 1},
		"another group has its name": {refuse: []error{apierrors.NewConflict(group, "gang", errors.New("UID"))}, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			report(t, gangOf(), tc.refuse, func(t *testing.T, r *reporting) {
				r.rest(time.Minute)
				if r.writes != tc.want {
					t.Errorf("conditions were written %d times, want %d", r.writes, tc.want)
				}
				if told := len(r.events()) == 1 && r.gang.Record.Conditions != nil; told != tc.wantTold {
					t.Errorf("an event tells of the conditions: %t, want %t", told, tc.wantTold)
				}
			})
		})
	}
}

// TestAPodIsToldWithoutBeingAskedForAgain: nothing happens when its time has come.
func TestAPodIsToldWithoutBeingAskedForAgain(t *testing.T) {
	const groupGrace = 3 * time.Second // in package news
	missing := func(g *news.Gang) { g.Group = nil }
	report(t, gangOf(missing), nil, func(t *testing.T, r *reporting) {
		r.rest(groupGrace - time.Millisecond)
		if told := r.told(t); len(told) > 0 {
			t.Errorf("Pods are told something too early: %v", slices.Collect(maps.Values(told)))
		}
		r.rest(time.Second)
		if diff := cmp.Diff(map[string]string{"a": news.ReasonNoGroup}, r.told(t)); diff != "" {
			t.Errorf("what Pods are told (-want, +got):\n%s", diff)
		}
		r.Report(r.gang.Key, 0)
		r.rest(time.Minute)
		if n := len(r.events()); n != 1 {
			t.Errorf("there are %d events, want one", n)
		}
	}, "a")
}

// TestConditionsAreWrittenWithoutBeingAskedForAgain, when it is time to say that members
// are missing.
func TestConditionsAreWrittenWithoutBeingAskedForAgain(t *testing.T) {
	const membersGrace = 2 * time.Second // in package news
	report(t, news.Gang{}, nil, func(t *testing.T, r *reporting) {
		r.mu.Lock()
		r.gang = gangOf(func(g *news.Gang) { g.Group.Created = time.Now() })
		r.mu.Unlock()
		r.Report(r.gang.Key, 0)
		r.rest(membersGrace - time.Second)
		if r.writes != 0 {
			t.Error("conditions of a new group are written too early")
		}
		r.rest(2 * time.Second)
		if r.writes != 1 {
			t.Errorf("conditions were written %d times, want once", r.writes)
		}
	})
}

// TestAGroupIsToldOfItsClassOnce, by an event.
func TestAGroupIsToldOfItsClassOnce(t *testing.T) {
	capped := func(g *news.Gang) {
		one, nine := int32(1), int32(9)
		g.Group.Spec.PriorityClassName, g.Highest, g.Class = "high", &one, &nine
	}
	report(t, gangOf(complete, capped), nil, func(t *testing.T, r *reporting) {
		synctest.Wait()
		r.Report(r.gang.Key, 0)
		r.rest(time.Minute)
		if got := r.events(); len(got) != 1 {
			t.Errorf("events %q, want one", got)
		}
	})
}

// TestWritersRest: conditions are written by the writer that never rests while
// members are being bound, and by all when that is over.
func TestWritersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var binding atomic.Bool
		var written, writing, most atomic.Int32
		var mu sync.Mutex
		quickly := func(context.Context, fair.Key) error {
			mu.Lock()
			most.Store(max(most.Load(), writing.Add(1)))
			mu.Unlock()
			defer writing.Add(-1)
			time.Sleep(patience / 2)
			written.Add(1)
			return nil
		}
		binding.Store(true)
		w := newWork("test", groupWriters, fair.NewBackoff(time.Second, time.Second), itself, quickly)
		for i := range 20 {
			w.after(dialect.Key{Namespace: "ns", Name: fmt.Sprint(i)}, 0)
		}
		go w.run(ctx, groupWriters, binding.Load)
		time.Sleep(10 * patience / 2)
		if got := most.Load(); got != 1 {
			t.Errorf("%d are being written at a time while members are bound, want one", got)
		}
		if got := written.Load(); got < 8 {
			t.Errorf("%d are written by one writer while members are bound, want about 10", got)
		}
		binding.Store(false)
		time.Sleep(patience)
		if got := most.Load(); got != groupWriters {
			t.Errorf("%d are being written at a time when the bindings are done, want %d", got, groupWriters)
		}
		time.Sleep(time.Minute)
		if got := written.Load(); got != 20 {
			t.Errorf("%d of 20 were written in the end", got)
		}
		cancel()
		synctest.Wait()
	})
}

// otherGroup is the group of the gang, if it is one of scheduler-plugins.
func otherGroup() *unstructured.Unstructured {
	group := &unstructured.Unstructured{}
	group.SetGroupVersionKind(dialect.SchedulerPlugins.Kind())
	group.SetNamespace("ns")
	group.SetName("gang")
	group.SetUID("uid-of-gang")
	return group
}

// foreign makes the gang one of scheduler-plugins whose phase somebody has written last.
func foreign(phaseBy string) func(*news.Gang) {
	return func(g *news.Gang) {
		g.Key.Dialect, g.Group.Key.Dialect = dialect.SchedulerPlugins, dialect.SchedulerPlugins
		g.Group.Status, g.Group.PhaseBy = &dialect.Status{}, phaseBy
		g.Census.Exist = 2
	}
}

// theirs makes the gang one that somebody else is to tell of, so far.
func theirs(g *news.Gang) { g.Theirs, g.Group.Asked = true, g.Group.Spec.Minimum.Members }

// TestAPhaseThatSomebodyElseWritesIsLeftToThem, and so are conditions, which other groups have
// not. Events tell all the same.
func TestAPhaseThatSomebodyElseWritesIsLeftToThem(t *testing.T) {
	for name, tc := range map[string]struct {
		phaseBy string
		want    int
	}{
		"nobody has written it":                {"", 1},
		"a scheduler like this has written it": {FieldManager, 1},
		"another program has written it":       {"controller", 0},
	} {
		t.Run(name, func(t *testing.T) {
			report(t, gangOf(complete, refused, foreign(tc.phaseBy)), nil, func(t *testing.T, r *reporting) {
				r.rest(time.Minute)
				writes := 0
				for _, action := range r.others.Actions() {
					if action.Matches("patch", "podgroups/status") {
						writes++
					}
				}
				if writes != tc.want {
					t.Errorf("the status was written %d times, want %d", writes, tc.want)
				}
				if r.writes != 0 {
					t.Errorf("conditions were written %d times", r.writes)
				}
				if told := fmt.Sprint(r.events()); !strings.Contains(told, "NotEnoughResources no room") {
					t.Errorf("the events say %s, want that there is no room", told)
				}
			})
		})
	}
}

// TestAStatusIsLeftToAProgramThatFightsForIt, which the log says once, and written when it is time to
// try again.
func TestAStatusIsLeftToAProgramThatFightsForIt(t *testing.T) {
	yields := func(g *news.Gang) {
		foreign("")(g)
		g.Foreign, g.YieldsUntil = true, time.Now().Add(10*time.Minute)
	}
	report(t, gangOf(complete, refused), nil, func(t *testing.T, r *reporting) {
		r.mu.Lock()
		yields(&r.gang)
		r.mu.Unlock()
		writes := func() (n int) {
			for _, action := range r.others.Actions() {
				if action.Matches("patch", "podgroups/status") {
					n++
				}
			}
			return n
		}
		r.Report(r.gang.Key, 0)
		r.rest(9 * time.Minute)
		if n := writes(); n != 0 {
			t.Errorf("the status was written %d times while it is left to another program", n)
		}
		if told := r.gang.Record.YieldTold; !told.Equal(r.gang.YieldsUntil) {
			t.Errorf("the log tells of %v, want %v", told, r.gang.YieldsUntil)
		}
		r.rest(2 * time.Minute)
		if n := writes(); n == 0 {
			t.Error("the status is not written when it is time to try again")
		}
	})
}

// TestCountersRestFromWhenTheAPIServerHasAnswered: to whoever has made the group, a write that took
// long comes late, and the next one is not to come sooner for that.
func TestCountersRestFromWhenTheAPIServerHasAnswered(t *testing.T) {
	const interval = 10 * time.Second // in package news
	report(t, gangOf(complete, refused, foreign(""), theirs), nil, func(t *testing.T, r *reporting) {
		synctest.Wait()
		var answered []time.Time
		r.others.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(3 * time.Second)
			answered = append(answered, time.Now())
			group := otherGroup()
			group.SetResourceVersion("2")
			return true, group, nil
		})
		r.mu.Lock()
		r.gang.Theirs, r.gang.Group.ResourceVersion = false, "1"
		r.mu.Unlock()
		r.Report(r.gang.Key, 0)
		r.rest(4 * time.Second)
		r.mu.Lock()
		r.gang.Census.Running++
		r.mu.Unlock()
		r.Report(r.gang.Key, 0)
		r.rest(time.Minute)
		if len(answered) != 2 {
			t.Fatalf("the status was written %d times, want twice", len(answered))
		}
		if begun := answered[1].Add(-3 * time.Second); begun.Sub(answered[0]) < interval {
			t.Errorf("new counters are written %v after the last write was done, want %v", begun.Sub(answered[0]), interval)
		}
	})
}

// TestAWriteRestsOnTheNewestVersionThatIsKnown, that of the last write or the one that the watch has
// shown, so that it is refused if somebody else has changed the group. What is refused is written
// when the watch has shown that change.
func TestAWriteRestsOnTheNewestVersionThatIsKnown(t *testing.T) {
	report(t, gangOf(complete, refused, foreign(""), theirs), nil, func(t *testing.T, r *reporting) {
		synctest.Wait()
		stored := 20
		var asked []string
		r.others.PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
			var body struct {
				Metadata struct{ ResourceVersion string }
			}
			if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &body); err != nil {
				return true, nil, err
			}
			asked = append(asked, body.Metadata.ResourceVersion)
			if body.Metadata.ResourceVersion != fmt.Sprint(stored) {
				return true, nil, apierrors.NewConflict(dialect.SchedulerPlugins.Resource().GroupResource(), "gang", errors.New("it has changed"))
			}
			stored++
			group := otherGroup()
			group.SetResourceVersion(fmt.Sprint(stored))
			return true, group, nil
		})
		for _, step := range []struct {
			change func(*news.Gang)
			want   string // the version that the write rests on, empty for no write
		}{
			{func(g *news.Gang) { g.Theirs, g.Group.ResourceVersion = false, "9" }, "9"}, // refused
			{func(g *news.Gang) { g.Group.ResourceVersion = "20" }, "20"},
			{func(g *news.Gang) { g.Census.Running = 2 }, "21"},
			{func(g *news.Gang) { g.Group.ResourceVersion, g.Group.Status = "22", g.Record.Status }, ""},
			{func(g *news.Gang) { stored = 23; g.Group.ResourceVersion = "23"; g.Census.Succeeded = 2 }, "23"},
		} {
			asked = nil
			r.mu.Lock()
			step.change(&r.gang)
			r.mu.Unlock()
			r.Report(r.gang.Key, 0)
			r.rest(time.Second)
			if got := strings.Join(asked, " "); got != step.want {
				t.Errorf("writes rest on the versions %q, want %q", got, step.want)
			}
		}
	})
}

// TestAWriteIsNotRefusedForEver because of a version that is gone: etcd was restored.
func TestAWriteIsNotRefusedForEver(t *testing.T) {
	report(t, gangOf(complete, refused, foreign(""), theirs), nil, func(t *testing.T, r *reporting) {
		synctest.Wait()
		var asked []string
		r.others.PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
			body := string(action.(clienttesting.PatchAction).GetPatch())
			for _, version := range []string{"1000", "20"} {
				if strings.Contains(body, `"`+version+`"`) {
					asked = append(asked, version)
				}
			}
			if strings.Contains(body, `"1000"`) {
				return true, nil, apierrors.NewConflict(dialect.SchedulerPlugins.Resource().GroupResource(), "gang", errors.New("it has changed"))
			}
			group := otherGroup()
			group.SetResourceVersion("21")
			return true, group, nil
		})
		r.mu.Lock()
		r.gang.Theirs, r.gang.Group.ResourceVersion = false, "20"
		r.gang.Record.Status, r.gang.Record.Version = &dialect.Status{Running: 7}, "1000"
		r.mu.Unlock()
		r.Report(r.gang.Key, 0)
		r.rest(time.Minute)
		if got := strings.Join(asked, " "); got != "1000 20" {
			t.Errorf("writes rest on the versions %q, want the one that is gone and then the one that there is", got)
		}
	})
}

// TestTheStatusOfVolcanosGroupsIsWrittenWhenItsCRDChanges: it gains a subresource for the status, or loses it.
func TestTheStatusOfVolcanosGroupsIsWrittenWhenItsCRDChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		had, has, isGone bool
		tries            int
	}{
		"it has one":        {had: true, has: true, tries: 1},
		"it has none":       {tries: 1},
		"it gains one":      {has: true, tries: 2},
		"it loses it":       {had: true, tries: 2},
		"the group is gone": {had: true, has: true, isGone: true, tries: 2},
	} {
		t.Run(name, func(t *testing.T) {
			volcanos := func(g *news.Gang) {
				foreign("")(g)
				g.Key.Dialect, g.Group.Key.Dialect = dialect.Volcano, dialect.Volcano
			}
			report(t, gangOf(complete, refused, volcanos, theirs), nil, func(t *testing.T, r *reporting) {
				synctest.Wait()
				written, tries := false, 0
				r.others.PrependReactor("patch", "podgroups", func(action clienttesting.Action) (bool, runtime.Object, error) {
					tries++
					onSubresource := action.GetSubresource() != ""
					if tc.isGone || onSubresource && !tc.has {
						return true, nil, apierrors.NewNotFound(dialect.Volcano.Resource().GroupResource(), "gang")
					}
					group := otherGroup()
					group.SetResourceVersion("2")
					if onSubresource != tc.has {
						return true, group, nil
					}
					written = true
					return true, group, unstructured.SetNestedField(group.Object, dialect.PhaseInqueue, "status", "phase")
				})
				r.lacksStatus.Store(!tc.had)
				r.mu.Lock()
				r.gang.Theirs, r.gang.Group.ResourceVersion = false, "1"
				r.mu.Unlock()
				r.Report(r.gang.Key, 0)
				r.rest(59 * time.Second)
				if written == tc.isGone || tries != tc.tries {
					t.Errorf("the status is written: %t, want %t, by %d requests, want %d", written, !tc.isGone, tries, tc.tries)
				}
			})
		})
	}
}

// TestANewMessageIsAnEventOfItsOwn, also under a reason that was told before: a user is to see it. The
// same message again is counted.
func TestANewMessageIsAnEventOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		kube := fake.NewClientset()
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			t.Fatal(err)
		}
		r := NewReporter(nil, nil, nil, nil, broadcaster.NewRecorder(runtime.NewScheme(), FieldManager), nil)
		gang := gangOf(foreign(""))
		var notes []string
		for _, message := range []string{"short of 2 cpu", "short of 2 cpu", "short of 1 cpu", "short of 2 cpu"} {
			r.recordEvent(ctx, &gang, news.Event{Kind: corev1.EventTypeWarning, Reason: "NotEnoughResources", Message: message})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		list, err := kube.EventsV1().Events("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			notes = append(notes, event.Reason+": "+event.Note)
		}
		slices.Sort(notes)
		if diff := cmp.Diff([]string{"NotEnoughResources: short of 1 cpu", "NotEnoughResources: short of 2 cpu"}, notes); diff != "" {
			t.Errorf("events (-want, +got):\n%s", diff)
		}
		broadcaster.Shutdown()
		cancel()
		r.groups.queue.ShutDown()
		r.marks.queue.ShutDown()
	})
}

// TestWhatALateLeaderSaysOfAGroupIsPutRight: what was written is held against what the group says once that is newer.
func TestWhatALateLeaderSaysOfAGroupIsPutRight(t *testing.T) {
	report(t, gangOf(complete, refused, func(g *news.Gang) { g.Group.ResourceVersion = "9" }), nil, func(t *testing.T, r *reporting) {
		r.rest(time.Minute)
		shown := func(version string, conditions []schedulingv1alpha1.PodGroupCondition) {
			r.mu.Lock()
			group := *r.gang.Group
			group.ResourceVersion, group.Conditions = version, conditions
			r.gang.Group = &group
			r.mu.Unlock()
			r.Report(r.gang.Key, 0)
			r.rest(time.Minute)
		}
		written := r.gang.Record.Conditions
		shown("10", written)
		if r.writes != 1 {
			t.Fatalf("%d writes, want 1", r.writes)
		}
		late := []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: schedulingv1alpha1.ReasonScheduled}}
		shown("8", late)
		if r.writes != 1 {
			t.Error("it is written again before the watch has shown what was written")
		}
		shown("11", late)
		if r.writes != 2 || !news.Same(r.gang.Record.Conditions, written) {
			t.Errorf("after %d writes it is told %v, want a second one that says %v again", r.writes, r.gang.Record.Conditions, written)
		}
	})
}
