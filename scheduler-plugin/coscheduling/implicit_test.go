// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// byOwners are arguments that cycle the rules on for whose Pods lockstep-controller makes PodGroups.
const byOwners = `{"initialBackoff":"50ms","maxBackoff":"200ms","groupingRules":["JobSets","LeaderWorkerSets","Jobs"]}`

// makeNamespace makes the namespace of the tests, in which owners have PodGroups or not.
func makeNamespace(labelled bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace}}
	if labelled {
		ns.Labels = map[string]string{schedulingv1alpha1.LabelGangByOwner: "true"}
	}
	return ns
}

// ofJob makes a Pod one of a Job.
func ofJob(name string) podOption {
	return labelled("batch.kubernetes.io/controller-uid", "uid-of-"+name)
}

// ofSet makes a Pod one of a Job of a JobSet.
func ofSet(job string) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.Label("jobset.sigs.k8s.io/jobset-uid", "uid-of-set").Label("jobset.sigs.k8s.io/restart-attempt", "0").Label("jobset.sigs.k8s.io/job-key", job)
	}
}

// implicitGroup makes the PodGroup that lockstep-controller makes for a Pod, or for its Job if that has one of its own.
func implicitGroup(pod *corev1.Pod, perJob bool, minimum int32, policy schedulingv1alpha1.SchedulingPolicy) *schedulingv1alpha1.PodGroup {
	implicit, ofItsJob := podgroup.ImplicitOf(pod)
	if perJob {
		implicit = ofItsJob
	}
	group := makeGroup(implicit.Name(pod), minimum, func(spec *schedulingv1alpha1.PodGroupSpec) {
		spec.MemberLabels, spec.SchedulingPolicy = implicit.MemberLabels(pod), policy
	})
	group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "uid-of-job", Controller: ptr.To(true)}}
	return group
}

// groupOfJob makes the PodGroup of the Job of the tests.
func groupOfJob(minimum int32) *schedulingv1alpha1.PodGroup {
	return implicitGroup(makePod("job-0", ofJob("job")), false, minimum, schedulingv1alpha1.PolicyGang)
}

// deleteGroup deletes a PodGroup.
func (w *world) deleteGroup(name string) {
	w.t.Helper()
	if err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// label has the namespace have the label or not.
func (w *world) label(labelled bool) {
	w.t.Helper()
	if _, err := w.kube.CoreV1().Namespaces().Update(w.t.Context(), makeNamespace(labelled), metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// stayUnbound checks that ordinary Pods are placed and those of a Job are not.
func (w *world) stayUnbound(ordinary, prefix string) {
	w.t.Helper()
	w.create(makePod(ordinary))
	w.eventually("an ordinary Pod is bound", func() bool { return slices.Contains(w.bound(), ordinary) })
	if bound := w.bound(); slices.ContainsFunc(bound, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
		w.t.Errorf("%v are bound, and they are a gang in part", bound)
	}
}

// TestAJobIsPlacedWhole, in a namespace that asks for it, whatever is seen first.
func TestAJobIsPlacedWhole(t *testing.T) {
	succeeded := func(w *schedulertesting.PodWrapper) { w.Phase(corev1.PodSucceeded) }
	for name, tc := range map[string]struct {
		before []apiruntime.Object
		// late says that the PodGroup comes last.
		late bool
		want []string
	}{
		"when all its Pods have come":              {want: []string{"job-0", "job-1"}},
		"when its PodGroup is made after its Pods": {late: true, want: []string{"job-0", "job-1"}},
		"beside one that runs already":             {before: []apiruntime.Object{makePod("job-9", ofJob("job"), onNode("node-0"))}, want: []string{"job-0"}},
		"beside one that has succeeded":            {before: []apiruntime.Object{makePod("job-9", ofJob("job"), onNode("node-0"), succeeded)}, want: []string{"job-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeNamespace(true), tc.before)...)
				w.args = byOwners
				if !tc.late {
					w.create(groupOfJob(2))
				}
				w.start()
				w.create(makePod("job-0", ofJob("job")))
				if len(tc.before) == 0 {
					w.stayUnbound("alone", "job-")
					w.create(makePod("job-1", ofJob("job")))
				}
				if tc.late {
					w.stayUnbound("beside", "job-")
					w.create(groupOfJob(2))
				}
				w.eventually("all are bound", func() bool {
					return slices.Equal(slices.DeleteFunc(w.bound(), func(name string) bool { return !strings.HasPrefix(name, "job-") }), tc.want)
				})
			})
		})
	}
}

// TestNoPodIsPlacedAloneWhileLockstepControllerIsDown: for a minute nobody makes the PodGroup, and after five seconds the
// Pods say what they wait for.
func TestNoPodIsPlacedAloneWhileLockstepControllerIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), makeNamespace(true))...)
		w.args = byOwners
		w.start()
		w.create(makePod("job-0", ofJob("job")))
		w.create(makePod("job-1", ofJob("job")))
		time.Sleep(5 * time.Second)
		condition := w.scheduledCondition("job-0")
		if condition.Reason != news.ReasonNoGroup || !strings.Contains(condition.Message, "lockstep-controller makes") {
			t.Errorf("after five seconds a Pod says %q: %s", condition.Reason, condition.Message)
		}
		time.Sleep(55 * time.Second)
		w.stayUnbound("alone", "job-")
		w.create(groupOfJob(2))
		w.eventually("both are bound", func() bool { return len(w.bound()) == 3 })
	})
}

// TestAPodWithoutItsPodGroupIsToldWhateverTheClockSays: that of the API server may be an hour off.
func TestAPodWithoutItsPodGroupIsToldWhateverTheClockSays(t *testing.T) {
	for name, off := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeNamespace(true))...)
				w.args = byOwners
				w.start()
				created := func(w *schedulertesting.PodWrapper) { w.CreationTimestamp(metav1.NewTime(time.Now().Add(off))) }
				w.create(makePod("job-0", ofJob("job"), created))
				w.eventually("it is told that its PodGroup is missing", func() bool { return w.scheduledCondition("job-0").Reason == news.ReasonNoGroup })
			})
		})
	}
}

// TestAGangWhosePodGroupIsDeletedWaits, and is placed whole once there is another one. One that runs goes on.
func TestAGangWhosePodGroupIsDeletedWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1), makeNamespace(true), makePod("of-run-0", labelled("batch.kubernetes.io/controller-uid", "uid-of-run"), onNode("node-0")),
			implicitGroup(makePod("of-run-0", labelled("batch.kubernetes.io/controller-uid", "uid-of-run")), false, 1, schedulingv1alpha1.PolicyGang), groupOfJob(2))...)
		w.args = byOwners
		w.start()
		w.create(makePod("job-0", ofJob("job")))
		w.create(makePod("job-1", ofJob("job")))
		w.condition("job-uid-of-job", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.deleteGroup("job-uid-of-job")
		w.deleteGroup("job-uid-of-run")
		for _, node := range makeNodes("more", 1, 8) {
			w.create(node)
		}
		w.eventually("a Pod is told that it waits", func() bool { return w.scheduledCondition("job-0").Reason == news.ReasonNoGroup })
		w.stayUnbound("alone", "job-")
		again := groupOfJob(2)
		again.UID = types.UID("another")
		w.create(again)
		w.eventually("all are bound", func() bool { return len(w.bound()) == 3 })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("%v were evicted", victims)
		}
	})
}

// TestPodsThatNoRuleMakesAGangAreOrdinary, and are not told anything.
func TestPodsThatNoRuleMakesAGangAreOrdinary(t *testing.T) {
	worker := func(w *schedulertesting.PodWrapper) {
		w.Label("leaderworkerset.sigs.k8s.io/name", "serve").Label("leaderworkerset.sigs.k8s.io/group-key", "g").Annotation("leaderworkerset.sigs.k8s.io/size", "2")
	}
	for name, tc := range map[string]struct {
		of      podOption
		prepare func(w *world)
		later   func(w *world)
	}{
		"their namespace does not ask for it":                    {of: ofJob("job"), prepare: func(w *world) { w.create(makeNamespace(false)) }},
		"their namespace is seen later, and does not ask for it": {of: ofJob("job"), later: func(w *world) { w.create(makeNamespace(false)) }},
		"the rule is off": {of: ofJob("job"), prepare: func(w *world) {
			w.create(makeNamespace(true))
			w.args = `{"groupingRules":["KueuePods"]}`
		}},
		"the workers wait for their leader, and their PodGroup says so": {of: worker, prepare: func(w *world) { w.create(makeNamespace(true)) },
			later: func(w *world) {
				w.create(implicitGroup(makePod("a", worker), false, 1, schedulingv1alpha1.PolicyBasic))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makePod("a", tc.of))...)
				w.args = byOwners
				if tc.prepare != nil {
					tc.prepare(w)
				}
				w.start()
				if tc.later != nil {
					w.stayUnbound("b", "a")
					tc.later(w)
				}
				w.eventually("it is bound by itself", func() bool { return slices.Contains(w.bound(), "a") })
			})
		})
	}
}

// TestANamespaceThatIsLabelledLaterHasGangs: a Pod that waits for room is a member from then on.
func TestANamespaceThatIsLabelledLaterHasGangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, makeNamespace(false), makePod("job-0", ofJob("job")))
		w.args = byOwners
		w.start()
		w.eventually("the Pod finds no room by itself", func() bool { return w.scheduledCondition("job-0").Reason == corev1.PodReasonUnschedulable })
		w.label(true)
		for _, node := range makeNodes("node", 1, 4) {
			w.create(node)
		}
		w.stayUnbound("alone", "job-")
		w.create(groupOfJob(2))
		w.condition("job-uid-of-job", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		w.create(makePod("job-1", ofJob("job")))
		w.eventually("both are bound", func() bool { return len(w.bound()) == 3 })
	})
}

// TestAGangThatWaitsStaysOneWhenItsNamespaceLosesTheLabel, for the scheduler that leads and for one that takes over. A Pod
// that has no PodGroup yet is an ordinary one.
func TestAGangThatWaitsStaysOneWhenItsNamespaceLosesTheLabel(t *testing.T) {
	for name, before := range map[string]bool{"while the scheduler runs": true, "before the scheduler starts": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 8), makeNamespace(before), groupOfJob(2), makePod("job-0", ofJob("job")), makePod("other-0", ofJob("other")))...)
				w.args = byOwners
				w.start()
				if before {
					w.stayUnbound("first", "other-")
					w.label(false)
				}
				w.eventually("a Pod without a PodGroup is bound by itself", func() bool { return slices.Contains(w.bound(), "other-0") })
				w.stayUnbound("alone", "job-")
				w.create(makePod("job-1", ofJob("job")))
				w.eventually("the gang is bound", func() bool { return slices.Contains(w.bound(), "job-0") && slices.Contains(w.bound(), "job-1") })
			})
		})
	}
}

// TestEachJobOfAJobSetInOrderIsAGang, whatever comes first: the Pods, the group that says so, or that of the Job.
func TestEachJobOfAJobSetInOrderIsAGang(t *testing.T) {
	first := makePod("set-a-0", ofSet("a"))
	set := implicitGroup(first, false, 1, schedulingv1alpha1.PolicyGangPerJob)
	job := implicitGroup(first, true, 2, schedulingv1alpha1.PolicyGang)
	for name, groups := range map[string][]apiruntime.Object{"that of the JobSet first": {set, job}, "that of the Job first": {job, set}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 8), makeNamespace(true), first, makePod("set-a-1", ofSet("a")), makePod("set-b-0", ofSet("b")))...)
				w.args = byOwners
				w.start()
				w.stayUnbound("alone", "set-")
				w.create(groups[0].DeepCopyObject())
				w.stayUnbound("beside", "set-")
				w.create(groups[1].DeepCopyObject())
				w.eventually("the first Job is bound", func() bool { return w.placed("set-a") == 2 })
				if w.placed("set-b") > 0 {
					t.Error("a Pod of the second Job is bound, and has no group")
				}
				w.create(implicitGroup(makePod("set-b-0", ofSet("b")), true, 1, schedulingv1alpha1.PolicyGang))
				w.eventually("the second Job is bound", func() bool { return w.placed("set-b") == 1 })
			})
		})
	}
}

// TestAPodWithoutTheLabelsOfAGroupIsNoMember, though a group has the name that follows from its labels.
func TestAPodWithoutTheLabelsOfAGroupIsNoMember(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), makeNamespace(true), makeGroup("job-uid-of-job", 1), makePod("job-0", ofJob("job")))...)
		w.args = byOwners
		w.start()
		w.eventually("it is told so", func() bool { return w.scheduledCondition("job-0").Reason == news.ReasonNotAMember })
		w.stayUnbound("alone", "job-")
	})
}
