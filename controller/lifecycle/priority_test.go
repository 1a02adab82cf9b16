// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// priorities is a cluster with two PriorityClasses.
func priorities(class string) (int32, bool) {
	value, exists := map[string]int32{"low": 10, "high": 1000}[class]
	return value, exists
}

// TestPodsOfAGangHaveItsClass, so that quota and admission see it, unless their
// template names one. A lower one is warned of.
func TestPodsOfAGangHaveItsClass(t *testing.T) {
	template := func(spec string) string { return `{"spec":{` + spec + `}}` }
	low := template(`"priorityClassName":"low"`)
	warned := []string{"The priority class of the gang is high, but the Pod template of role a sets the lower class low; these Pods may be preempted first"}
	tests := map[string]struct {
		gang      *frameworkv1.GangSpec
		templates []string
		unknown   bool
		wantPod   string
		want      []string
	}{
		"the template names none":                      {gang: &frameworkv1.GangSpec{PriorityClassName: "high"}, templates: []string{template("")}, wantPod: "high"},
		"there is no template":                         {gang: &frameworkv1.GangSpec{PriorityClassName: "high"}, templates: []string{""}, wantPod: "high"},
		"the template has a value of its own":          {gang: &frameworkv1.GangSpec{PriorityClassName: "high"}, templates: []string{template(`"priority":3`)}},
		"the template names a lower class":             {gang: &frameworkv1.GangSpec{PriorityClassName: "high"}, templates: []string{low, template("")}, wantPod: "low", want: warned},
		"the template names a higher class":            {gang: &frameworkv1.GangSpec{PriorityClassName: "low"}, templates: []string{template(`"priorityClassName":"high"`)}, wantPod: "high"},
		"the template names the same class":            {gang: &frameworkv1.GangSpec{PriorityClassName: "low"}, templates: []string{low}, wantPod: "low"},
		"the template names a class that is not there": {gang: &frameworkv1.GangSpec{PriorityClassName: "high"}, templates: []string{template(`"priorityClassName":"none"`)}, wantPod: "none"},
		"the class of the gang is not there":           {gang: &frameworkv1.GangSpec{PriorityClassName: "none"}, templates: []string{low}, wantPod: "low"},
		"it is not known which classes there are":      {gang: &frameworkv1.GangSpec{PriorityClassName: "high"}, templates: []string{low}, unknown: true, wantPod: "low"},
		"the gang names none":                          {gang: &frameworkv1.GangSpec{}, templates: []string{template("")}},
		"it is no gang":                                {templates: []string{template("")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var roles []frameworkv1.TaskRoleSpec
			for i, template := range tc.templates {
				r := role(string(rune('a'+i)), 2)
				r.Task.Pod.Raw = []byte(template)
				r.Task.RetryPolicy.MaxRetryCount = 1
				roles = append(roles, r)
			}
			f := framework(roles...)
			f.Spec.Gang = tc.gang
			f.Spec.RetryPolicy.MaxRetryCount = 1
			w := newWorld(t, f)
			if !tc.unknown {
				w.priorityOf = priorities
			}
			var got []string
			w.onEvent = func(event Event) {
				if event.Reason == ReasonLowerPriorityClass {
					got = append(got, event.Message)
				}
			}
			w.run()
			w.runPods()
			w.retryTask("a-0")
			if class := w.pods["fw-a-0"].Spec.PriorityClassName; class != tc.wantPod {
				t.Errorf("the Pod has the class %q, want %q", class, tc.wantPod)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected warnings in an attempt (-want +got):\n%s", diff)
			}
			got = nil
			w.retryAttempt()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected warnings in the next attempt (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClassThatDoesNotExistIsWaitedFor: it fails no attempt.
func TestAClassThatDoesNotExistIsWaitedFor(t *testing.T) {
	f := framework(role("w", 1))
	f.Spec.Gang = &frameworkv1.GangSpec{PriorityClassName: "none"}
	w := newWorld(t, f)
	w.refuse = func(pod *corev1.Pod) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name,
			fmt.Errorf("no PriorityClass with name %s was found", pod.Spec.PriorityClassName))
	}
	w.run()
	w.run()
	if got, want := transcript(w.written), "F#0 AttemptPreparing blocked=PriorityClassNotFound, w-0#0 AttemptCreationPending"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.refuse = nil
	w.run()
	w.runPods()
	if got, want := transcript(w.written), "F#0 AttemptRunning, w-0#0 AttemptRunning"; got != want {
		t.Errorf("once there is the class: got %s, want %s", got, want)
	}
}
