// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// byOwners are arguments that turn the rules on that ask owners.
const byOwners = `{"initialBackoff":"50ms","maxBackoff":"200ms","dialects":{"rules":["JobSets","LeaderWorkerSets","Jobs"]}}`

// makeNamespace makes the namespace of the tests, in which owners may make gangs or not.
func makeNamespace(allowed bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testNamespace}}
	if allowed {
		ns.Labels = map[string]string{dialect.LabelGangByOwner: "true"}
	}
	return ns
}

// own creates an owner for which a rule asks.
func (w *world) own(rule configv1alpha1.GroupingRule, name string, spec map[string]any) {
	w.t.Helper()
	kinds := dialect.OwnerKinds()
	kind := kinds[slices.IndexFunc(kinds, func(k dialect.OwnerKind) bool { return k.Rule == rule })]
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kind.Resource.GroupVersion().WithKind(string(rule[:len(rule)-1])))
	object.SetNamespace(testNamespace)
	object.SetName(name)
	object.SetUID(types.UID("uid-of-" + name))
	if _, err := w.foreign.Resource(kind.Resource).Namespace(testNamespace).Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// ofJob makes a Pod one of a Job.
func ofJob(name string) podOption {
	return labelled("batch.kubernetes.io/controller-uid", "uid-of-"+name)
}

var twoAtOnce = map[string]any{"parallelism": int64(2)}

// TestAJobIsPlacedWhole, in a namespace that lets it, whatever is seen first.
func TestAJobIsPlacedWhole(t *testing.T) {
	succeeded := func(w *schedulertesting.PodWrapper) { w.Phase(corev1.PodSucceeded) }
	for name, tc := range map[string]struct {
		before []apiruntime.Object
		// late says that the Job comes last.
		late bool
		want []string
	}{
		"when all its Pods have come":    {want: []string{"job-0", "job-1"}},
		"when it is seen after its Pods": {late: true, want: []string{"job-0", "job-1"}},
		"beside one that runs already":   {before: []apiruntime.Object{makePod("job-9", ofJob("job"), onNode("node-0"))}, want: []string{"job-0"}},
		"beside one that has succeeded":  {before: []apiruntime.Object{makePod("job-9", ofJob("job"), onNode("node-0"), succeeded)}, want: []string{"job-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeNamespace(true), tc.before)...)
				w.args = byOwners
				if !tc.late {
					w.own(configv1alpha1.RuleJobs, "job", twoAtOnce)
				}
				w.start()
				w.create(makePod("job-0", ofJob("job")))
				if len(tc.before) == 0 {
					w.create(makePod("alone"))
					w.eventually("an ordinary Pod is bound", func() bool { return slices.Contains(w.bound(), "alone") })
					if bound := w.bound(); slices.Contains(bound, "job-0") {
						t.Errorf("%v are bound, and one of the Job is missing", bound)
					}
					w.create(makePod("job-1", ofJob("job")))
				}
				if tc.late {
					w.eventually("its Pods are told that they wait for it", func() bool { return w.scheduledCondition("job-0").Reason == ReasonNoOwner })
					w.own(configv1alpha1.RuleJobs, "job", twoAtOnce)
				}
				w.eventually("all are bound", func() bool {
					return slices.Equal(slices.DeleteFunc(w.bound(), func(name string) bool { return name == "alone" }), tc.want)
				})
			})
		})
	}
}

// TestAPodWithoutItsOwnerIsToldWhateverTheClockSays: that of the API server may be an hour off.
func TestAPodWithoutItsOwnerIsToldWhateverTheClockSays(t *testing.T) {
	for name, off := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), makeNamespace(true))...)
				w.args = byOwners
				w.start()
				created := func(w *schedulertesting.PodWrapper) { w.CreationTimestamp(metav1.NewTime(time.Now().Add(off))) }
				w.create(makePod("job-0", ofJob("job"), created))
				w.eventually("it is told that its owner is not seen", func() bool { return w.scheduledCondition("job-0").Reason == ReasonNoOwner })
			})
		})
	}
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
		"their namespace does not let them":                    {of: ofJob("job"), prepare: func(w *world) { w.create(makeNamespace(false)) }},
		"their namespace is seen later, and does not let them": {of: ofJob("job"), later: func(w *world) { w.create(makeNamespace(false)) }},
		"the rule is off": {of: ofJob("job"), prepare: func(w *world) {
			w.create(makeNamespace(true))
			w.args = `{"dialects":{"rules":["KueuePods"]}}`
		}},
		"nobody may list Jobs": {of: ofJob("job"), prepare: func(w *world) {
			w.create(makeNamespace(true))
			w.foreign.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, apiruntime.Object, error) {
				return true, nil, apierrors.NewForbidden(dialect.OwnerKinds()[2].Resource.GroupResource(), "", nil)
			})
		}},
		"the workers wait for their leader": {of: worker, prepare: func(w *world) { w.create(makeNamespace(true)) },
			later: func(w *world) {
				w.own(configv1alpha1.RuleLeaderWorkerSets, "serve", map[string]any{"startupPolicy": "LeaderReady"})
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
					w.create(makePod("b"))
					w.eventually("an ordinary Pod is bound", func() bool { return slices.Contains(w.bound(), "b") })
					if bound := w.bound(); slices.Contains(bound, "a") {
						t.Errorf("%v are bound, and it is not known whether they are a gang", bound)
					}
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
		w.own(configv1alpha1.RuleJobs, "job", twoAtOnce)
		w.start()
		w.eventually("the Pod finds no room by itself", func() bool { return w.scheduledCondition("job-0").Reason == corev1.PodReasonUnschedulable })
		if _, err := w.kube.CoreV1().Namespaces().Update(t.Context(), makeNamespace(true), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the Pod is told that another one is missing", func() bool { return w.recorded("NotEnoughTasks") > 0 })
		for _, node := range makeNodes("node", 1, 4) {
			w.create(node)
		}
		w.create(makePod("alone"))
		w.eventually("an ordinary Pod is bound", func() bool { return slices.Contains(w.bound(), "alone") })
		if bound := w.bound(); slices.Contains(bound, "job-0") {
			t.Errorf("%v are bound, and one of the Job is missing", bound)
		}
		w.create(makePod("job-1", ofJob("job")))
		w.eventually("both are bound", func() bool { return len(w.bound()) == 3 })
	})
}

// TestAnOwnerIsForgottenWithItsPods, and not before.
func TestAnOwnerIsForgottenWithItsPods(t *testing.T) {
	pods := func() cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{byOwner: ownersOf})
	}
	g := &grouping{
		links:  &dialect.Links{Owners: &dialect.Owners{Allows: func(string) (bool, bool) { return true, true }}},
		living: pods(), ended: pods(), gone: map[dialect.OwnerKey]bool{},
	}
	g.links.TurnOnRule(configv1alpha1.RuleJobs)
	job := &unstructured.Unstructured{}
	job.SetNamespace(testNamespace)
	job.SetUID("uid-of-job")
	of := ownersOfRule{OwnerKind: dialect.OwnerKinds()[2]}
	pod := makePod("job-0", ofJob("job"))
	g.links.Owners.Set(of.KeyOf(job), of.Read(job))
	known := func() bool {
		g.sweep(t.Context())
		_, named := g.links.KeyOf(pod)
		return named
	}
	stores := map[string]cache.Store{"lives": g.living.GetStore(), "has ended": g.ended.GetStore()}
	for _, store := range stores {
		if err := store.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	g.deleteOwner(of, job)
	for what, store := range stores {
		if !known() {
			t.Errorf("the Job is forgotten, and a Pod of it %s", what)
		}
		if err := store.Delete(pod); err != nil {
			t.Fatal(err)
		}
	}
	if known() || len(g.gone) > 0 {
		t.Error("the Job is remembered, and it is gone with all its Pods")
	}
}
