// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// PodSelector selects the Pods that are labelled with the job's name. They may include Pods of an earlier job with that
// name.
func (j *Job) PodSelector() string {
	key := kubeflowv1.KeyJobName
	switch {
	case j.IsPodGroup():
		if group, err := podGroupOf(j.Object); err == nil && len(group.Spec.MemberLabels) > 0 {
			return labels.Set(group.Spec.MemberLabels).String()
		}
		key = schedulingv1alpha1.LabelPodGroup
	case j.Resource.Group == batchv1alpha1.SchemeGroupVersion.Group:
		key = batchv1alpha1.KeyJobName
	}
	return labels.Set{key: j.Name}.String()
}

// JobPods reads the Pods of a job, or the members of a PodGroup.
func (r *Reader) JobPods(ctx context.Context, j *Job) ([]corev1.Pod, error) {
	isIts := func(pod *corev1.Pod) bool { return controlled.By(j.Object.GetUID(), pod) }
	if j.IsPodGroup() {
		group, err := podGroupOf(j.Object)
		if err != nil {
			return nil, err
		}
		isIts = dialect.FromOwn(group).HasMember
	}
	var own []corev1.Pod
	err := pages(ctx, j.Namespace, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		options.LabelSelector = j.PodSelector()
		page, err := r.Kube.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			if isIts(&page.Items[i]) {
				own = append(own, page.Items[i])
			}
		}
		return page.Continue, nil
	})
	return own, err
}

// JobTree reads a job's objects and returns them as a tree. JobTree leaves out objects that can't be read.
func (r *Reader) JobTree(ctx context.Context, j *Job) *view.Tree {
	all := view.Job{Row: j.Row, Conditions: conditionsOf(j.Object)}
	unread := func(what string, err error) {
		if err != nil {
			all.Unread = append(all.Unread, Unread(what, err))
		}
	}
	var err error
	all.Pods, err = r.JobPods(ctx, j)
	unread("Pods", err)
	all.PodGroup, err = r.groupOf(ctx, j)
	unread("PodGroups", err)
	all.Events, err = r.eventsOf(ctx, j.Namespace, j.Object.GetUID())
	unread("Events", err)
	if !j.IsPodGroup() && all.PodGroup != nil {
		all.Row.Waiting = cmp.Or(all.Row.Waiting, view.WaitingOfGroup(all.PodGroup))
		more, err := r.eventsOf(ctx, j.Namespace, all.PodGroup.UID)
		all.Events = append(all.Events, more...)
		unread("Events of the PodGroup", err)
	}
	return view.OfJob(all)
}

// groupOf reads the newest PodGroup of a job; nil if there is none.
func (r *Reader) groupOf(ctx context.Context, j *Job) (newest *schedulingv1alpha1.PodGroup, err error) {
	if j.IsPodGroup() {
		return podGroupOf(j.Object)
	}
	err = pages(ctx, j.Namespace, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			group := &page.Items[i]
			if dialect.FromOwn(group).IsFor(j.Object.GetUID()) && (newest == nil || newest.CreationTimestamp.Before(&group.CreationTimestamp)) {
				newest = group
			}
		}
		return page.Continue, nil
	})
	return newest, err
}

// conditionsOf returns the conditions of an object, if it has any. In Volcano's Jobs the field with a condition's type
// is called status.
func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	found, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var conditions []metav1.Condition
	for _, item := range found {
		fields, _ := item.(map[string]any)
		text := func(name string) string { value, _ := fields[name].(string); return value }
		condition := metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
		if condition.Type == "" {
			condition.Type, condition.Status = text("status"), ""
		}
		if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			condition.LastTransitionTime = metav1.NewTime(at)
		}
		conditions = append(conditions, condition)
	}
	return conditions
}
