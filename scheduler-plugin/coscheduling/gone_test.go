// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	lockstepfake "github.com/lockstep-k8s/lockstep/client/clientset/versioned/fake"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// notThere and notAllowed are how the API server refuses the groups of a dialect.
func notThere(d dialect.Dialect) *apierrors.StatusError {
	return apierrors.NewNotFound(d.Resource().GroupResource(), "")
}

func notAllowed(d dialect.Dialect) *apierrors.StatusError {
	return apierrors.NewForbidden(d.Resource().GroupResource(), "", nil)
}

// TestPodsAreToldThatTheKindOfTheirGroupIsGone: to create one would not help any more. What was placed
// stays, and new Pods wait, too.
func TestPodsAreToldThatTheKindOfTheirGroupIsGone(t *testing.T) {
	const label = "scheduling.x-k8s.io/pod-group"
	for name, tc := range map[string]struct {
		refusal *apierrors.StatusError
		want    string
	}{
		"it is taken away": {notThere(dialect.SchedulerPlugins), "the Pod waits for PodGroup lost, and the API server serves no PodGroups of scheduling.x-k8s.io: " +
			"the CustomResourceDefinition podgroups.scheduling.x-k8s.io is missing"},
		"the right to list it is": {notAllowed(dialect.SchedulerPlugins), "the Pod waits for PodGroup lost, and lockstep-scheduler may not list PodGroups of scheduling.x-k8s.io: " +
			"the ClusterRole that allows it is not bound"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("lost-0", labelled(label, "lost")), makePod("gang-0", labelled(label, "gang")))...)
				w.serve(makeOtherGroup("gang", 1))
				w.start()
				w.eventually("a Pod is told that its group does not exist", func() bool { return w.scheduledCondition("lost-0").Reason == news.ReasonNoGroup })
				w.foreign.refuse(dialect.SchedulerPlugins, tc.refusal)
				w.foreign.breakWatches()
				w.eventually("it is told that there can't be any", func() bool { return w.scheduledCondition("lost-0").Reason == news.ReasonNotServed })
				if got := w.scheduledCondition("lost-0").Message; got != tc.want {
					t.Errorf("it is told %q, want %q", got, tc.want)
				}
				w.create(makePod("late-0", labelled(label, "late")))
				w.eventually("so is one that comes later", func() bool { return w.scheduledCondition("late-0").Reason == news.ReasonNotServed })
				if bound := w.bound(); !slices.Equal(bound, []string{"gang-0"}) {
					t.Errorf("%v are bound, want gang-0", bound)
				}
			})
		})
	}
}

// attended is a dialect that is on, with its informer, in a bubble of synctest.
type attended struct {
	*foreign
	groups *otherGroups
	bench  *bench
	log    ktesting.Underlier
}

// newAttended starts the informer of a dialect that the API server serves, and waits until it is filled.
func newAttended(t *testing.T, d dialect.Dialect, serve func(groups *otherGroups)) *attended {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	a := &attended{groups: newOtherGroups(), bench: newBench(d), log: logger.GetSink().(ktesting.Underlier)}
	serve(a.groups)
	a.groups.refuse(d, nil)
	links := &dialect.Links{}
	links.TurnOn(d)
	a.foreign = &foreign{dialect: d, mode: configv1alpha1.DialectAuto, read: map[dialect.Dialect]func(*unstructured.Unstructured) *dialect.Group{
		dialect.Native: dialect.FromNative, dialect.SchedulerPlugins: dialect.FromSchedulerPlugins}[d],
		foreigners: &foreigners{watcher: &watcher{ctx: ctx, gangs: a.bench.Gangs}, client: a.groups, discovery: lockstepfake.NewSimpleClientset().Discovery(), links: links,
			serves: func(string) bool { return true }}}
	a.inquire()
	a.inquiry.say(a.inquiry.found)
	if _, err := a.inquiry.follow(a.showGroups, func() { a.gangs.SetUnread(d, "", "") }); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return a
}

// refuseWith has the API server refuse the groups.
func (a *attended) refuseWith(why *apierrors.StatusError) {
	a.groups.refuse(a.dialect, why)
	a.groups.breakWatches()
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

// lines are how often it was told whether the dialect is on.
func (a *attended) lines() int {
	return strings.Count(a.log.GetBuffer().String(), "Dialect of PodGroups")
}

// create creates a group in some version.
func create(t *testing.T, groups *otherGroups, resource schema.GroupVersionResource, group *unstructured.Unstructured) {
	t.Helper()
	group.SetAPIVersion(resource.GroupVersion().String())
	if _, err := groups.Resource(resource).Namespace(testNamespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestAKindThatGoesIsToldOnceAndComesBack within ten seconds; within a minute if what lacks is a right.
func TestAKindThatGoesIsToldOnceAndComesBack(t *testing.T) {
	const d = dialect.SchedulerPlugins
	for name, tc := range map[string]struct {
		refusal *apierrors.StatusError
		want    string
		within  time.Duration
	}{
		"it is not served any more":   {notThere(d), string(notServed), 15 * time.Second},
		"it may not be read any more": {notAllowed(d), string(forbidden), 65 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a := newAttended(t, d, func(groups *otherGroups) { create(t, groups, d.Resource(), makeOtherGroup("early", 2)) })
				if state := a.state.Load(); !state.On || !state.Served {
					t.Fatalf("it begins with %v", state)
				}
				a.refuseWith(tc.refusal)
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if state := a.state.Load(); !state.On || state.Served || state.Reason != tc.want {
					t.Errorf("it is %+v, want on, not served: %s", state, tc.want)
				}
				if n := a.lines(); n != 2 {
					t.Errorf("it is told in %d lines whether it is on, want one at the start and one when it goes", n)
				}
				if got := a.log.GetBuffer().String(); strings.Contains(got, "Failed to watch") {
					t.Errorf("what was told is told again:\n%s", got)
				}
				if group, _ := a.bench.Look(dialect.Key{Dialect: d, Namespace: testNamespace, Name: "early"}); group.Group == nil {
					t.Error("what was known of a group is forgotten")
				}

				create(t, a.groups, d.Resource(), makeOtherGroup("late", 2))
				a.groups.refuse(d, nil)
				time.Sleep(tc.within)
				synctest.Wait()
				if state := a.state.Load(); !state.On || !state.Served || state.Reason != string(served) {
					t.Errorf("it is %+v after %v, want it served", state, tc.within)
				}
				if n := a.lines(); n != 3 {
					t.Errorf("it is told in %d lines whether it is on, want one more", n)
				}
				if group, _ := a.bench.Look(dialect.Key{Dialect: d, Namespace: testNamespace, Name: "late"}); group.Group == nil {
					t.Error("a group that was created meanwhile is not seen")
				}
			})
		})
	}
}

// TestAnAPIServerThatIsUpgradedIsReadInItsNewVersion: what it has served before it does not know any more.
func TestAnAPIServerThatIsUpgradedIsReadInItsNewVersion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		versions := native.Resources()
		a := newAttended(t, native, func(groups *otherGroups) {
			groups.older.Store(true)
			create(t, groups, versions[1], makeNative(t, "gang", gangOf(2)))
		})
		version := func() string {
			known, _ := a.bench.Look(dialect.Key{Dialect: native, Namespace: testNamespace, Name: "gang"})
			if known.Group == nil {
				return ""
			}
			return known.Group.Resource().Version
		}
		if got := version(); got != versions[1].Version {
			t.Fatalf("the group is known in version %q, want %s", got, versions[1].Version)
		}
		create(t, a.groups, versions[0], makeNative(t, "gang", gangOf(2)))
		a.groups.older.Store(false)
		a.refuseWith(nil)
		if got := version(); got != versions[0].Version {
			t.Errorf("the group is known in version %q, want %s", got, versions[0].Version)
		}
		if state := a.state.Load(); !state.Served || a.lines() != 1 {
			t.Errorf("it is %+v and told in %d lines, and it was served all the time", state, a.lines())
		}
	})
}
