// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// native are the PodGroups of Kubernetes itself.
const native = dialect.Native

// makeNative makes one of them with a spec, which is JSON.
func makeNative(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	group := &unstructured.Unstructured{}
	if err := group.UnmarshalJSON([]byte(`{"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "spec": ` + spec + `}`)); err != nil {
		t.Fatal(err)
	}
	group.SetNamespace(testNamespace)
	group.SetName(name)
	group.SetUID(types.UID("uid-of-native-" + name))
	return group
}

// gangOf is the spec of a gang.
func gangOf(minCount int) string {
	return fmt.Sprintf(`{"schedulingPolicy": {"gang": {"minCount": %d}}}`, minCount)
}

const basic = `{"schedulingPolicy": {"basic": {}}}`

// inNative has a Pod name one of them.
func inNative(name string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.PodGroupName(name) }
}

// change changes a PodGroup of Kubernetes.
func (w *world) changeNative(name string, change func(*unstructured.Unstructured)) {
	w.t.Helper()
	groups := w.foreign.Resource(native.Resource()).Namespace(testNamespace)
	group, err := groups.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	change(group)
	if _, err := groups.Update(w.t.Context(), group, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// says are the conditions of a PodGroup of Kubernetes.
func (w *world) says(name string) string {
	w.t.Helper()
	group, err := w.foreign.Resource(native.Resource()).Namespace(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return conditionsOf(group)
}

func conditionsOf(group *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(group.Object, "status", "conditions")
	var said []string
	for _, c := range conditions {
		c := c.(map[string]any)
		said = append(said, fmt.Sprintf("%s=%s %s: %s", c["type"], c["status"], c["reason"], c["message"]))
	}
	return strings.Join(said, "; ")
}

// TestAGangOfKubernetesIsPlacedWhole, and its condition says so for good. Beside it is a gang of
// Lockstep's and one of scheduler-plugins that have its name, and each of them lacks a member.
func TestAGangOfKubernetesIsPlacedWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 2), makePod("own-0", inGroup("gang")),
			makePod("other-0", labelled(labelsOfSchedulerPlugins[0], "gang")))...)
		w.serve(makeOtherGroup("gang", 2))
		w.serveDialect(native, makeNative(t, "gang", gangOf(2)))
		w.start()
		w.create(makePod("gang-0", inNative("gang")))
		w.eventually("it says what is missing", func() bool {
			return strings.HasPrefix(w.says("gang"), "PodGroupInitiallyScheduled=False Unschedulable: NotEnoughTasks: 1 of at least 2 members exist")
		})
		if bound := w.bound(); len(bound) > 0 {
			t.Errorf("%v are bound, and each of the gangs lacks a member", bound)
		}
		w.create(makePod("gang-1", inNative("gang")))
		w.eventually("both are bound", func() bool { return slices.Equal(w.bound(), []string{"gang-0", "gang-1"}) })
		w.eventually("it says so", func() bool { return strings.HasPrefix(w.says("gang"), "PodGroupInitiallyScheduled=True Scheduled:") })

		w.deletePod("gang-1")
		w.create(makePod("gang-2", inNative("gang"), plusCores("9")))
		w.eventually("its new member finds no room, and an event says so", func() bool { return w.recorded("PodDeleted") > 0 })
		if said := w.says("gang"); !strings.HasPrefix(said, "PodGroupInitiallyScheduled=True Scheduled:") {
			t.Errorf("it says %s, and it was placed once", said)
		}
	})
}

// TestAGangOfAnOlderKubernetesIsPlacedWhole: the API server serves an older version alone.
func TestAGangOfAnOlderKubernetesIsPlacedWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", inNative("gang")))...)
		w.foreign.older.Store(true)
		group := makeNative(t, "gang", gangOf(2))
		older := native.Resources()[1]
		group.SetAPIVersion(older.GroupVersion().String())
		if _, err := w.foreign.Resource(older).Namespace(testNamespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.serveDialect(native)
		w.start()
		says := func() string {
			group, err := w.foreign.Resource(older).Namespace(testNamespace).Get(t.Context(), "gang", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return conditionsOf(group)
		}
		w.eventually("it says what is missing", func() bool { return strings.HasPrefix(says(), "PodGroupScheduled=False Unschedulable: NotEnoughTasks") })
		w.create(makePod("gang-1", inNative("gang")))
		w.eventually("both are bound", func() bool { return slices.Equal(w.bound(), []string{"gang-0", "gang-1"}) })
		w.eventually("it says so", func() bool { return strings.HasPrefix(says(), "PodGroupScheduled=True Scheduled:") })
	})
}

// TestAnOrdinaryGroupOfKubernetesHasOrdinaryPods: each is placed for itself, as soon as the group is
// there, and preempts for itself.
func TestAnOrdinaryGroupOfKubernetesHasOrdinaryPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("early-0", inNative("group")))...)
		w.serveDialect(native)
		w.start()
		w.eventually("the first one waits for the group", func() bool { return w.scheduledCondition("early-0").Reason == "PodGroupNotFound" })
		w.serveDialect(native, makeNative(t, "group", basic))
		w.eventually("it is bound", func() bool { return slices.Equal(w.bound(), []string{"early-0"}) })
		w.create(makePod("late-0", inNative("group")))
		w.eventually("so is one that comes later", func() bool { return slices.Equal(w.bound(), []string{"early-0", "late-0"}) })
		w.eventually("the group says that it is placed", func() bool { return strings.HasPrefix(w.says("group"), "PodGroupInitiallyScheduled=True") })

		w.create(makePod("important-0", inNative("group"), func(w *schedulertesting.PodWrapper) { w.Priority(10) }))
		w.eventually("an important one evicts another", func() bool { return len(w.victims()) == 1 })
		w.eventually("and has its place", func() bool { return slices.Contains(w.bound(), "important-0") })
	})
}

// TestAGroupThatIsBeingDeletedStartsNothing, of whichever policy, and what runs goes on.
func TestAGroupThatIsBeingDeletedStartsNothing(t *testing.T) {
	for name, spec := range map[string]string{"a gang": gangOf(1), "ordinary Pods": basic} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, makeNodes("node", 1, 1)...)
				w.serveDialect(native, makeNative(t, "group", spec))
				w.start()
				w.create(makePod("first-0", inNative("group")))
				w.eventually("one runs", func() bool { return slices.Equal(w.bound(), []string{"first-0"}) })
				w.create(makePod("second-0", inNative("group")))
				w.eventually("another one finds no room", func() bool { return w.scheduledCondition("second-0").Reason == corev1.PodReasonUnschedulable })
				w.changeNative("group", func(group *unstructured.Unstructured) {
					now := metav1.Now()
					group.SetDeletionTimestamp(&now)
				})
				w.eventually("it is told why it waits", func() bool { return w.scheduledCondition("second-0").Reason == dialect.ReasonDeleted })
				for _, node := range makeNodes("more", 1, 4) {
					w.create(node)
				}
				w.create(makePod("ordinary-0"))
				w.eventually("an ordinary one is placed", func() bool { return slices.Contains(w.bound(), "ordinary-0") })
				w.eventually("nothing is left to be planned", w.quiet)
				if bound := w.bound(); !slices.Equal(bound, []string{"first-0", "ordinary-0"}) {
					t.Errorf("%v are bound, and the group is being deleted", bound)
				}
				if victims := w.victims(); len(victims) > 0 {
					t.Errorf("%v are evicted", victims)
				}
			})
		})
	}
}

// TestAGroupThatAsksForWhatCantBeHadIsTold, and so are its Pods.
func TestAGroupThatAsksForWhatCantBeHadIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makePod("member-0", inNative("group")))...)
		w.serveDialect(native, makeNative(t, "group", `{"schedulingPolicy": {"gang": {"minCount": 1}}, "resourceClaims": [{"name": "shared", "resourceClaimName": "c"}]}`))
		w.start()
		w.eventually("the group is told", func() bool {
			return strings.HasPrefix(w.says("group"), "PodGroupInitiallyScheduled=False SchedulerError: lockstep-scheduler does not support spec.resourceClaims")
		})
		w.eventually("the Pod is told", func() bool { return w.scheduledCondition("member-0").Reason == dialect.ReasonNotSupported })
		if bound := w.bound(); len(bound) > 0 {
			t.Errorf("%v are bound", bound)
		}
	})
}

// TestAGroupThatIsPreemptedAsAWholeIsTold, until it is placed again; one that may lose single Pods is
// not.
func TestAGroupThatIsPreemptedAsAWholeIsTold(t *testing.T) {
	for mode, told := range map[string]bool{"all": true, "single": false} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 2), makePod("low-0", inNative("low")), makePod("low-1", inNative("low")))...)
				w.serveDialect(native, makeNative(t, "low", `{"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"`+mode+`": {}}}`))
				w.start()
				w.eventually("it is placed", func() bool { return len(w.bound()) == 2 })
				w.eventually("it says so", func() bool { return strings.HasPrefix(w.says("low"), "PodGroupInitiallyScheduled=True") })
				w.create(makePod("high-0", func(w *schedulertesting.PodWrapper) { w.Priority(10) }))
				w.eventually("a more important Pod has its place", func() bool { return slices.Contains(w.bound(), "high-0") })
				if !told {
					if victims := w.victims(); len(victims) != 1 {
						t.Errorf("%v are evicted, want one", victims)
					}
					w.eventually("it is told by an event", func() bool {
						return w.recorded("PodDeleted") > 0 || w.quiet()
					})
					if said := w.says("low"); strings.Contains(said, "DisruptionTarget") {
						t.Errorf("it says %s, and it lost one Pod", said)
					}
					return
				}
				w.eventually("all of it are evicted", func() bool { return len(w.victims()) == 2 })
				w.eventually("it is told", func() bool { return strings.Contains(w.says("low"), "DisruptionTarget=True PreemptionByScheduler") })
				for _, object := range all(makeNodes("more", 1, 2), makePod("low-2", inNative("low")), makePod("low-3", inNative("low"))) {
					w.create(object)
				}
				w.eventually("it is placed again, and not a target any more", func() bool { return !strings.Contains(w.says("low"), "DisruptionTarget") })
			})
		})
	}
}

// TestAGroupOfKubernetesThatPreemptsNobodyWaits where another one evicts a Pod of lower priority.
func TestAGroupOfKubernetesThatPreemptsNobodyWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makePod("low", ofPriority(-1)))...)
		w.serveDialect(native, makeNative(t, "never", `{"schedulingPolicy": {"gang": {"minCount": 1}}, "preemptionPolicy": "Never"}`), makeNative(t, "gang", gangOf(1)))
		w.start()
		w.eventually("a Pod of lower priority runs", func() bool { return w.placed("low") == 1 })
		w.create(makePod("never-0", inNative("never"), ofPriority(10)))
		w.eventually("the gang that preempts nobody finds no room", func() bool { return w.marked("never-0") == 1 })
		w.eventually("nothing is left to be planned", w.quiet)
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("%v are evicted", victims)
		}
		w.create(makePod("gang-0", inNative("gang"), ofPriority(20)))
		w.eventually("another one runs in the place of that Pod", func() bool { return w.placed("gang") == 1 })
		if victims := w.victims(); !slices.Equal(victims, []string{"low"}) {
			t.Errorf("%v are evicted, want low", victims)
		}
	})
}

// TestPodsOfKubernetesGroupsAreOrdinaryWhere the dialect is off.
func TestPodsOfKubernetesGroupsAreOrdinaryWhere(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, w *world){
		"it is switched off": func(t *testing.T, w *world) {
			w.args = `{"podGroupAPIs":{"native":{"mode":"Off"}}}`
			w.serveDialect(native)
		},
		"nobody may list it": func(_ *testing.T, w *world) {
			w.foreign.refuse(native, apierrors.NewForbidden(native.Resource().GroupResource(), "", nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("gang-0", inNative("gang")))...)
				prepare(t, w)
				w.start()
				w.eventually("the Pod is bound by itself", func() bool { return slices.Equal(w.bound(), []string{"gang-0"}) })
			})
		})
	}
}

// TestTheGateOfKubeSchedulerItselfSwitchesTheDialectOff: both would place the Pods. It is told so.
func TestTheGateOfKubeSchedulerItselfSwitchesTheDialectOff(t *testing.T) {
	ofKubernetes := func() *kind {
		w := &watcher{ctx: t.Context(), links: &dialect.Links{}}
		of := w.kinds(configv1alpha1.PodGroupAPIs{Native: configv1alpha1.NativeAPI{Mode: configv1alpha1.PodGroupAPIOn}})
		return of[slices.IndexFunc(of, func(f *kind) bool { return f.dialect == native })]
	}
	if why := ofKubernetes().whyOff(); why != "" {
		t.Errorf("the dialect is off by default: %s", why)
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, kube.GenericWorkload, true)
	f := ofKubernetes()
	if asked := f.inquire(); asked != nil {
		t.Error("the API server is asked for it")
	}
	if _, err := f.start(); err != nil {
		t.Fatal(err)
	}
	if state := f.state.Load(); state.On || !strings.Contains(state.Reason, "GenericWorkload is on in this process") || f.links.AreOn(native) {
		t.Errorf("with the gate, the dialect is %+v", state)
	}
}
