// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The lives of this file hold what a Framework may cost: nobody else, and not much if
// it can't go on.

// keepApart disturbs one Framework only, for which requests are slow, fail and lose
// their answers. Others, that come and go meanwhile, must not notice.
func (l *shellLife) keepApart() {
	victim := l.frameworks[0]
	l.faults.only = victim.Namespace + "/" + victim.Name
	mine := []disturbance{disturbAnswers, disturbRequests, disturbRefusals, disturbNames}
	l.kinds = mine[:1+l.random.IntN(len(mine))]
	l.odds[faultSlow] = []int{0, 40, 100}[l.random.IntN(3)]
	l.faults.set(maps.Clone(l.odds))
	// It is never at rest: its tasks fail, and are retried.
	l.edit(victim, func(spec *frameworkv1.FrameworkSpec) {
		spec.ExecutionType, spec.RetryPolicy.MaxRetryCount = frameworkv1.ExecutionStart, frameworkv1.UnlimitedRetry
		for i := range spec.TaskRoles {
			spec.TaskRoles[i].TaskNumber = max(1, spec.TaskRoles[i].TaskNumber)
			spec.TaskRoles[i].Task.RetryPolicy.MaxRetryCount = int32(l.random.IntN(2) - 1)
		}
	})
	l.ends = func(pod *corev1.Pod) (int32, bool) {
		if pod.Annotations[frameworkv1.KeyFrameworkName] == victim.Name {
			return 1, l.random.IntN(4) == 0
		}
		return 0, true
	}
	l.trace.log("only %s is disturbed, by %v", victim.Name, l.kinds)
	all := l.frameworks
	born := map[*frameworkv1.Framework]time.Time{}
	for i := range 80 + l.random.IntN(80) {
		if i%4 == 0 && l.random.IntN(3) == 0 {
			l.frameworks = all[:1]
			l.disturb()
			l.frameworks = all
		}
		if l.random.IntN(20) == 0 && len(all) < 8 {
			f := l.newFramework(victim.Namespace, string(rune('a'+len(all))))
			f.Spec.ExecutionType = frameworkv1.ExecutionStart
			f.Spec.TaskRoles[0].TaskNumber = int32(1 + l.random.IntN(3))
			keepValid(&f.Spec)
			f = apiserver.Add(l.server, f)
			born[f] = time.Now()
			all = append(all, f)
			l.frameworks = all
		}
		l.pass(time.Second)
		l.runNodes(1)
		for f, since := range born {
			s := l.statusOf(f.Namespace, f.Name)
			switch {
			case s != nil && s.State == frameworkv1.FrameworkCompleted:
				delete(born, f)
			case time.Since(since) > longestUndisturbed:
				l.t.Errorf("Framework %s, which nothing disturbs, has not completed after %v: %s", f.Name, longestUndisturbed, brief(s))
				delete(born, f)
			}
		}
	}
	l.faults.only = ""
}

// longestUndisturbed is how long a small Framework takes whose tasks end at once.
const longestUndisturbed = 20 * time.Second

// steadyError is an error that stays, and the Framework that meets it.
type steadyError struct {
	name string
	// rule refuses requests. It may be missing.
	rule rule
	// prepare makes of a Framework one that meets the error.
	prepare func(l *shellLife, f *frameworkv1.Framework)
	// repair ends what the rule does not do.
	repair func(l *shellLife, f *frameworkv1.Framework)
}

// keepError gives a Framework an error that stays, and holds that it costs few
// requests and few lines, and that the Framework goes on when it is over.
func (l *shellLife) keepError() {
	l.makePeace()
	l.ends = func(pod *corev1.Pod) (int32, bool) { return 0, pod.Labels[frameworkv1.KeyFrameworkName] == "s" }
	e := steadyErrors[l.random.IntN(len(steadyErrors))]
	l.trace.log("an error that stays: %s", e.name)
	f := l.newFramework("ns", "s")
	f.Spec.ExecutionType, f.Spec.Gang = frameworkv1.ExecutionStart, nil
	f.Spec.TaskRoles[0].TaskNumber = []int32{1, 3, 60}[l.random.IntN(3)]
	for i := range f.Spec.TaskRoles {
		f.Spec.TaskRoles[i].FrameworkAttemptCompletionPolicy = frameworkv1.CompletionPolicySpec{
			MinFailedTaskCount: ptr.To[int32](1), MinSucceededTaskCount: ptr.To[int32](-1)}
	}
	if e.prepare != nil {
		e.prepare(l, f)
	}
	if e.rule.applies != nil {
		e.rule.name = e.name
		l.faults.add(e.rule)
	}
	f = apiserver.Add(l.server, f)
	l.frameworks = append(l.frameworks, f)
	const warmUp, measured = 10 * time.Minute, 10 * time.Minute
	for range int(warmUp / (5 * time.Second)) {
		l.pass(5 * time.Second)
		l.runNodes(1)
	}
	requests, news := l.faults.count("ns/s")
	l.pass(measured)
	requestsNow, newsNow := l.faults.count("ns/s")
	if n := requestsNow - requests; n > 2*int(measured/time.Minute) {
		l.t.Errorf("%s: %d requests in %v", e.name, n, measured)
	}
	if n := newsNow - news; n > 2*int(measured/time.Minute) {
		l.t.Errorf("%s: %d log lines and events in %v", e.name, n, measured)
	}
	l.faults.drop(e.name)
	if e.repair != nil {
		e.repair(l, f)
	}
	l.giveNamesBack()
	l.trace.log("the error is over")
	over := time.Now()
	for l.statusOf("ns", "s") == nil || l.statusOf("ns", "s").State != frameworkv1.FrameworkCompleted {
		if time.Since(over) > longestRecovery {
			l.t.Errorf("%s: %v after the error, Framework s has not completed: %s", e.name, longestRecovery, brief(l.statusOf("ns", "s")))
			break
		}
		l.pass(time.Second)
		l.runNodes(1)
	}
}

// longestRecovery is how long a Framework takes to complete once its error is over: room
// that appears is used within a minute.
const longestRecovery = 90 * time.Second

func refuseWith(refusal func(*apiserver.Request) error, applies func(*apiserver.Request) bool) rule {
	return rule{refusal: refusal, applies: func(r *apiserver.Request) bool {
		return frameworkOf(r) == "ns/s" && applies(r)
	}}
}

func webhookFailed(*apiserver.Request) error { return apiserver.WebhookFailed("steady.example.com") }
func unavailable(*apiserver.Request) error   { return apiserver.Unavailable() }
func overloaded(*apiserver.Request) error    { return apiserver.TooManyRequests(1) }

func writesStatus(r *apiserver.Request) bool {
	return r.Resource == "frameworks" && r.Subresource == "status"
}

func takePod(name string) func(*shellLife, *frameworkv1.Framework) {
	return func(l *shellLife, f *frameworkv1.Framework) {
		apiserver.Add(l.server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{squatter: ""}},
			Spec:       corev1.PodSpec{NodeName: "node-0"}, Status: corev1.PodStatus{Phase: corev1.PodUnknown},
		})
	}
}

var steadyErrors = []steadyError{
	{name: "an exhausted quota", rule: podsRefused("quota", "s-", podRefusals["quota"])},
	{name: "an exhausted quota of one role", rule: podsRefused("quota", "s-w-", podRefusals["quota"])},
	{name: "an exhausted quota of one task", rule: podsRefused("quota", "s-w-0", podRefusals["quota"])},
	{name: "a webhook for Pods that fails", rule: podsRefused("webhook", "s-", podRefusals["webhook"])},
	{name: "an overload of Pods", rule: podsRefused("overload", "s-", podRefusals["overload"])},
	{name: "a status that can't be written", rule: refuseWith(webhookFailed, writesStatus)},
	{name: "a status that always conflicts", rule: refuseWith(func(r *apiserver.Request) error {
		return apierrors.NewConflict(frameworkv1.SchemeGroupVersion.WithResource("frameworks").GroupResource(), r.Name, nil)
	}, writesStatus)},
	{name: "an overload of writes", rule: refuseWith(overloaded, func(r *apiserver.Request) bool { return r.Verb.Writes() && r.Resource != "events" })},
	{name: "nothing works", rule: refuseWith(unavailable, func(*apiserver.Request) bool { return true })},
	{name: "nothing can be read", rule: refuseWith(unavailable, func(r *apiserver.Request) bool { return r.Verb == apiserver.Get })},
	{name: "ConfigMaps refused", rule: refuseWith(webhookFailed, func(r *apiserver.Request) bool { return creates(r, "configmaps", "s-") })},
	{name: "Pods that can't be deleted", rule: refuseWith(webhookFailed, func(r *apiserver.Request) bool {
		return r.Resource == "pods" && r.Verb == apiserver.Delete
	})},
	{name: "ConfigMaps that can't be deleted", rule: refuseWith(webhookFailed, func(r *apiserver.Request) bool {
		return r.Resource == "configmaps" && r.Verb == apiserver.Delete
	})},
	{name: "PodGroups refused", rule: refuseWith(webhookFailed, func(r *apiserver.Request) bool { return creates(r, "podgroups", "s-") }),
		prepare: func(_ *shellLife, f *frameworkv1.Framework) { f.Spec.Gang = &frameworkv1.GangSpec{} }},
	{name: "the name of a Pod is taken", prepare: takePod("s-w-0")},
	{name: "the name of the ConfigMap is taken", prepare: func(l *shellLife, _ *frameworkv1.Framework) {
		apiserver.Add(l.server, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s-attempt", Labels: map[string]string{squatter: ""}}})
	}},
	{name: "the name of the PodGroup is taken", prepare: func(l *shellLife, f *frameworkv1.Framework) {
		f.Spec.Gang = &frameworkv1.GangSpec{}
		apiserver.Add(l.server, &schedulingv1alpha1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s-attempt", Labels: map[string]string{squatter: ""}},
			Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: 1},
		})
	}},
	{name: "a PriorityClass that does not exist",
		prepare: func(_ *shellLife, f *frameworkv1.Framework) {
			f.Spec.TaskRoles[0].Task.Pod = runtime.RawExtension{Raw: []byte(`{"spec":{"priorityClassName":"high"}}`)}
		},
		repair: addPriorityClass},
	{name: "a PriorityClass of the gang that does not exist",
		prepare: func(_ *shellLife, f *frameworkv1.Framework) {
			f.Spec.Gang = &frameworkv1.GangSpec{PriorityClassName: "high"}
		},
		repair: addPriorityClass},
	{name: "a quota for the last tasks of a gang", rule: podsRefused("quota", "s-w-2", podRefusals["quota"]),
		prepare: func(_ *shellLife, f *frameworkv1.Framework) {
			f.Spec.Gang = &frameworkv1.GangSpec{}
			f.Spec.TaskRoles[0].TaskNumber = 3
		}},
}

func addPriorityClass(l *shellLife, _ *frameworkv1.Framework) {
	apiserver.Add(l.server, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000})
}
