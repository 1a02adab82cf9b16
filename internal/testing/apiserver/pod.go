// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// defaultGrace is the grace period of a Pod that sets none, in seconds.
const defaultGrace = 30

// prepareCreatePod fills in what a new Pod does not say.
func (s *Server) prepareCreatePod(pod *corev1.Pod) error {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](defaultGrace)
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	return s.givePriority(pod)
}

// givePriority resolves the class of a Pod, as admission does.
func (s *Server) givePriority(pod *corev1.Pod) error {
	classes := s.tables[schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")].objects
	var class *schedulingv1.PriorityClass
	if name := pod.Spec.PriorityClassName; name != "" {
		if r := classes[types.NamespacedName{Name: name}]; r != nil {
			class = r.object.(*schedulingv1.PriorityClass)
		} else if value, ok := systemPriorities[name]; ok {
			class = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		} else {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("no PriorityClass with name %s was found", name))
		}
	} else {
		for _, r := range classes {
			candidate := r.object.(*schedulingv1.PriorityClass)
			if candidate.GlobalDefault && (class == nil || candidate.Value < class.Value) {
				class = candidate
			}
		}
	}
	if class == nil {
		class = &schedulingv1.PriorityClass{}
	}
	pod.Spec.PriorityClassName = class.Name
	pod.Spec.Priority = ptr.To(class.Value)
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = ptr.To(ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority))
	}
	return nil
}

// systemPriorities are the classes that every cluster has.
var systemPriorities = map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

// gracePeriod returns how many seconds a Pod gets to end when it is deleted. `asked` is what the client requests; nil
// without a request.
func gracePeriod(pod *corev1.Pod, asked *int64) int64 {
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return 0
	}
	period := ptr.Deref(asked, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))
	if period < 0 {
		return 1
	}
	return period
}

// setPodScheduled says in a Pod's conditions that it has a node.
func setPodScheduled(pod *corev1.Pod, now metav1.Time) {
	condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == condition.Type {
			pod.Status.Conditions[i] = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}
