// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// otherGroups are the PodGroups of other dialects on an API server.
type otherGroups struct {
	*dynamicfake.FakeDynamicClient
	// refusals answer who reads the groups of a dialect, if set.
	refusals map[dialect.Dialect]*atomic.Pointer[apierrors.StatusError]
	// older has the API server serve the older version, of kinds that have two.
	older atomic.Bool

	mu sync.Mutex
	// watches are those of groups.
	watches []watch.Interface
}

// newOtherGroups makes an API server that serves none.
func newOtherGroups() *otherGroups {
	o := &otherGroups{refusals: make(map[dialect.Dialect]*atomic.Pointer[apierrors.StatusError])}
	kinds := make(map[schema.GroupVersionResource]string)
	for _, d := range []dialect.Dialect{dialect.Native, dialect.SchedulerPlugins, dialect.Volcano} {
		for _, resource := range d.Resources() {
			kinds[resource] = "PodGroupList"
		}
		o.refusals[d] = &atomic.Pointer[apierrors.StatusError]{}
		o.refuse(d, apierrors.NewNotFound(d.Resource().GroupResource(), ""))
	}
	o.FakeDynamicClient = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(apiruntime.NewScheme(), kinds)
	o.PrependReactor("list", "podgroups", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		why := o.refusal(action.GetResource())
		return why != nil, nil, why
	})
	o.PrependWatchReactor("podgroups", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if why := o.refusal(action.GetResource()); why != nil {
			return true, nil, why
		}
		groups, err := o.Tracker().Watch(action.GetResource(), action.GetNamespace())
		o.mu.Lock()
		defer o.mu.Unlock()
		o.watches = append(o.watches, groups)
		return true, groups, err
	})
	o.PrependReactor("patch", "podgroups", o.apply)
	return o
}

// refusal is why the API server does not let groups be read, nil if it does.
func (o *otherGroups) refusal(resource schema.GroupVersionResource) error {
	for d, refusal := range o.refusals {
		if d.Resource().Group != resource.Group {
			continue
		}
		if why := refusal.Load(); why != nil {
			return why
		}
		if all := d.Resources(); len(all) > 1 && (resource == all[1]) != o.older.Load() {
			return apierrors.NewNotFound(resource.GroupResource(), "")
		}
	}
	return nil
}

// breakWatches has all watches of groups end.
func (o *otherGroups) breakWatches() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, groups := range o.watches {
		groups.Stop()
	}
	o.watches = nil
}

// apply stands in for server-side apply, for which the fake API server has no schema: it has the
// status be what one manager applies.
func (o *otherGroups) apply(action clienttesting.Action) (bool, apiruntime.Object, error) {
	patch, ok := action.(clienttesting.PatchAction)
	if !ok || patch.GetPatchType() != types.ApplyPatchType {
		return false, nil, nil
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(patch.GetPatch()); err != nil {
		return true, nil, err
	}
	object, err := o.Tracker().Get(action.GetResource(), action.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	group, ok := object.DeepCopyObject().(*unstructured.Unstructured)
	if !ok || action.GetSubresource() != "status" || applied.GetUID() != group.GetUID() {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), patch.GetName(), nil)
	}
	group.Object["status"] = applied.Object["status"]
	return true, group, o.Tracker().Update(action.GetResource(), group, group.GetNamespace())
}

// refuse has the API server answer who reads groups of a dialect with an error; nil for none.
func (o *otherGroups) refuse(d dialect.Dialect, why *apierrors.StatusError) {
	o.refusals[d].Store(why)
}

// makeForeignGroup makes a PodGroup of a dialect.
func makeForeignGroup(d dialect.Dialect, name string, minMember int64) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minMember": minMember}}}
	group.SetGroupVersionKind(d.Kind())
	group.SetNamespace(testNamespace)
	group.SetName(name)
	group.SetUID(types.UID("uid-of-other-group-" + name))
	return group
}

// makeOtherGroup makes a PodGroup of scheduler-plugins.
func makeOtherGroup(name string, minMember int64) *unstructured.Unstructured {
	return makeForeignGroup(dialect.SchedulerPlugins, name, minMember)
}

// serveDialect has the API server serve PodGroups of a dialect, and have some.
func (w *world) serveDialect(d dialect.Dialect, groups ...*unstructured.Unstructured) {
	w.t.Helper()
	for _, group := range groups {
		if _, err := w.foreign.Resource(d.Resource()).Namespace(testNamespace).Create(w.t.Context(), group, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.lock.Lock()
	w.lock.Resources = append(w.lock.Resources, &metav1.APIResourceList{GroupVersion: d.Kind().GroupVersion().String(), APIResources: []metav1.APIResource{{Name: "podgroups"}}})
	w.lock.Unlock()
	w.foreign.refuse(d, nil)
}

// serve has the API server serve PodGroups of scheduler-plugins, and have some.
func (w *world) serve(groups ...*unstructured.Unstructured) {
	w.t.Helper()
	w.serveDialect(dialect.SchedulerPlugins, groups...)
}

// phaseOf is the phase of a PodGroup of a dialect.
func (w *world) phaseOf(d dialect.Dialect, name string) string {
	w.t.Helper()
	group, err := w.foreign.Resource(d.Resource()).Namespace(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	phase, _, err := unstructured.NestedString(group.Object, "status", "phase")
	if err != nil {
		w.t.Fatal(err)
	}
	return phase
}

// phaseOfOther is the phase of a PodGroup of scheduler-plugins.
func (w *world) phaseOfOther(name string) string {
	w.t.Helper()
	return w.phaseOf(dialect.SchedulerPlugins, name)
}

// bound are the names of the Pods that were bound, sorted.
func (w *world) bound() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.bindings))
}

func labelled(label, value string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Label(label, value) }
}

// labelsOfSchedulerPlugins are those by which Pods name a group of scheduler-plugins: since 0.25, until 0.24, and before 0.19.
var labelsOfSchedulerPlugins = []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"}

// TestAGangOfSchedulerPluginsIsPlacedWhole, by whichever label its Pods name it, beside a gang
// of Lockstep's that has the same name. Its phase says how far it is.
func TestAGangOfSchedulerPluginsIsPlacedWhole(t *testing.T) {
	for _, label := range labelsOfSchedulerPlugins {
		t.Run(label, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2), makePod("own-0", inGroup("gang")))...)
				w.serve(makeOtherGroup("gang", 2))
				w.start()
				w.create(makePod("gang-0", labelled(label, "gang")))
				w.eventually("the group says that Pods are missing", func() bool { return w.phaseOfOther("gang") == dialect.PhasePending })
				if bound := w.bound(); len(bound) > 0 {
					t.Errorf("%v are bound, and each of the gangs lacks a member", bound)
				}
				w.create(makePod("gang-1", labelled(label, "gang")))
				w.eventually("both are bound", func() bool { return slices.Equal(w.bound(), []string{"gang-0", "gang-1"}) })
				w.eventually("the group says that they are to run", func() bool { return w.phaseOfOther("gang") == dialect.PhaseScheduling })
				for _, name := range []string{"gang-0", "gang-1"} {
					w.end(name, corev1.PodRunning)
				}
				w.eventually("the group says that they run", func() bool { return w.phaseOfOther("gang") == dialect.PhaseRunning })
			})
		})
	}
}

// TestPodsOfADialectThatIsOffAreOrdinary, and so are those of one that the API server does not let the scheduler read.
func TestPodsOfADialectThatIsOffAreOrdinary(t *testing.T) {
	tests := map[string]func(w *world){
		"it is switched off": func(w *world) { w.args = `{"podGroupAPIs":{"schedulerPlugins":{"mode":"Off"}}}`; w.serve() },
		"nobody may list it": func(w *world) {
			w.foreign.refuse(dialect.SchedulerPlugins, apierrors.NewForbidden(dialect.SchedulerPlugins.Resource().GroupResource(), "", nil))
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", labelled("scheduling.x-k8s.io/pod-group", "gang")))...)
				prepare(w)
				w.start()
				w.eventually("the Pod is bound by itself", func() bool { return slices.Equal(w.bound(), []string{"gang-0"}) })
			})
		})
	}
}

// TestPodsOfAKindThatIsNotServedWait, each of them, in a scheduler that has never seen the kind: it may have been taken away
// before. When it comes, the program is started again.
func TestPodsOfAKindThatIsNotServedWait(t *testing.T) {
	for _, mode := range []string{"Auto", "On"} {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", labelled("scheduling.x-k8s.io/pod-group", "gang")), makePod("alone"))...)
			w.args = `{"podGroupAPIs":{"schedulerPlugins":{"mode":"` + mode + `"}}}`
			w.start()
			w.eventually("an ordinary Pod is bound", func() bool { return slices.Equal(w.bound(), []string{"alone"}) })
			w.eventually("the other one is told why it waits", func() bool { return w.scheduledCondition("gang-0").Reason == news.ReasonNotServed })
			if w.hasEnded() {
				t.Error("the program ends before the kind comes")
			}
			w.serve(makeOtherGroup("gang", 1))
			w.eventually("the program is to be started again", w.hasEnded)
			if bound := w.bound(); !slices.Equal(bound, []string{"alone"}) {
				t.Errorf("%v are bound", bound)
			}
		})
	}
}

// TestTheGroupsOfOthersAreLeftAlone: no member of the group names this scheduler.
func TestTheGroupsOfOthersAreLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		elsewhere := func(w *schedulertesting.PodWrapper) { w.SchedulerName("another") }
		label := labelled("scheduling.x-k8s.io/pod-group", "theirs")
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("theirs-0", label, elsewhere, onNode("node-0")), makePod("theirs-1", label, elsewhere))...)
		w.serve(makeOtherGroup("theirs", 2), makeOtherGroup("ours", 2))
		w.start()
		w.create(makePod("ours-0", labelled("scheduling.x-k8s.io/pod-group", "ours")))
		// Both lack a member, and the other one was the first.
		w.eventually("our group has a phase", func() bool { return w.phaseOfOther("ours") != "" })
		if phase := w.phaseOfOther("theirs"); phase != "" {
			t.Errorf("the phase %s was written to the group of another scheduler", phase)
		}
	})
}

// TestAPodGroupAPIThatCantBeListedCostsNobodyElse: the scheduler starts all the same, after a minute for all dialects together, and
// the Pods of those that can't be listed wait.
func TestAPodGroupAPIThatCantBeListedCostsNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", labelled("scheduling.x-k8s.io/pod-group", "gang")), makeGroup("ours", 1), makeMembers("ours", 1))...)
		for _, d := range []dialect.Dialect{dialect.Native, dialect.SchedulerPlugins, dialect.Volcano} {
			w.foreign.refuse(d, apierrors.NewInternalError(errors.New("the conversion webhook is gone")))
		}
		began := time.Now()
		w.start()
		w.eventually("a gang of Lockstep's is placed", func() bool { return w.placed("ours") == 1 })
		if took := time.Since(began); took > answerTimeout+time.Second {
			t.Errorf("that took %v, want no more than %v", took, answerTimeout)
		}
		w.eventually("a Pod is told why it waits", func() bool { return w.scheduledCondition("gang-0").Reason == news.ReasonNotServed })
	})
}

// TestNobodyTakesAPodThatMayBeAMember: what its gang is worth is known when its group can be read.
func TestNobodyTakesAPodThatMayBeAMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makePod("theirs-0", labelled("scheduling.x-k8s.io/pod-group", "theirs"), onNode("node-0")),
			makeGroup("gang", 1), makeMembers("gang", 1, ofPriority(10)), makePod("alone", ofPriority(20)))...)
		w.args = `{"podGroupAPIs":{"schedulerPlugins":{"mode":"On"}}}`
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("the ordinary Pod finds no place", func() bool { return w.marked("alone") == 1 })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("%v are evicted", victims)
		}
	})
}

// TestAGangIsPlacedSoonWhenAnotherSchedulerTakesAPodElsewhere: kube-scheduler has chosen a node for an ordinary Pod, and
// another scheduler binds that Pod to another node. The first node has room for a gang now.
func TestAGangIsPlacedSoonWhenAnotherSchedulerTakesAPodElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makeNodes("small", 1, 0))...)
		lingers := &lingering{except: "gang-0", release: make(chan struct{}), fails: errors.New("the Pod has a node")}
		w.others = []fwk.Plugin{lingers}
		w.start()
		w.create(makePod("pod"))
		w.eventually("the Pod is assumed", func() bool { return len(w.sched.Cache.Dump().AssumedPods) == 1 })
		w.create(makeGroup("gang", 1))
		w.create(makePod("gang-0", inGroup("gang")))
		w.eventually("the gang has been planned in vain, and nothing happens", func() bool { return w.marked("gang") == 1 && w.quiet() })
		begun := time.Now()
		if err := w.kube.Tracker().Update(podResource, makePod("pod", onNode("small-0")), testNamespace); err != nil {
			t.Fatal(err)
		}
		w.eventually("the Pod is seen there", func() bool { return len(w.sched.Cache.Dump().Nodes["small-0"].GetPods()) == 1 })
		close(lingers.release)
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 1 })
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it is placed after %v, as each gang is tried anyway after a while", took)
		}
	})
}
