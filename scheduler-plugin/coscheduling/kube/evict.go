// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// Preemptor is the gang for which Pods are evicted, for messages.
type Preemptor struct {
	// Object has its kind set, because the event recorder's scheme may not know the kind.
	Object    Object
	Scheduler string
	Priority  int32
	// Kind is the word for the preemptor in messages.
	Kind string
}

// Evict ends a Pod as kube-scheduler's own preemption does: the Pod gets the condition DisruptionTarget and is deleted,
// and an event names the preemptor. A Pod that waits for a permit or is about to be bound returns to the queue instead.
// If the Pod is gone, Evict returns nil, and does nothing to another Pod with the same name. The error is ErrHasEnded
// if the Pod has succeeded or failed.
func Evict(ctx context.Context, handle fwk.Handle, by *Preemptor, pod *corev1.Pod, plugin string) error {
	_, err := executorFor(handle, pod).PreemptPod(ctx, victimOn(pod.Spec.NodeName), executorPreemptor{by}, pod, plugin)
	return err
}

// executorFor returns kube-scheduler's own code for victims, limited to deleting the given Pod.
func executorFor(handle fwk.Handle, victim *corev1.Pod) *preemption.Executor {
	return preemption.NewExecutor(onlyPod{handle, newOnlyPodClient(handle.ClientSet(), victim)}, feature.Features{})
}

// IsRefusal reports whether the API server has refused a request before it changed anything, so that a retry would not
// help.
func IsRefusal(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err)
}

// IsDenial reports whether the API server has refused a request on an existing object and would refuse it again. The
// reason is a policy, a webhook, or a namespace that is being deleted. A conflict and "too many requests" are not
// denials.
func IsDenial(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// TakeBack removes the condition DisruptionTarget from a Pod that could not be evicted. Otherwise, a later failure of
// the Pod would count as preemption. It leaves a Pod that is ending or gone as it is. `before` is the Pod before the
// eviction.
func TakeBack(ctx context.Context, handle fwk.Handle, before *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, RequestTime)
	defer cancel()
	if err := takeBack(ctx, handle, before); err != nil {
		klog.FromContext(ctx).Error(err, "A Pod that could not be preempted may say that it is")
	}
}

func takeBack(ctx context.Context, handle fwk.Handle, before *corev1.Pod) error {
	live, err := handle.ClientSet().CoreV1().Pods(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at %s: %w", klog.KObj(before), err)
	}
	said := ConditionOf(live, corev1.DisruptionTarget)
	if live.UID != before.UID || live.DeletionTimestamp != nil || said == nil || said.Reason != corev1.PodReasonPreemptionByScheduler {
		return nil
	}
	status := live.Status.DeepCopy()
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	if was := ConditionOf(before, corev1.DisruptionTarget); was != nil && was.Reason != said.Reason {
		status.Conditions = append(status.Conditions, *was)
	}
	if err := schedutil.PatchPodStatus(ctx, newOnlyPodClient(handle.ClientSet(), before), before.Name, before.Namespace, &live.Status, status); err != nil {
		return fmt.Errorf("taking back that %s is preempted: %w", klog.KObj(before), err)
	}
	return nil
}

// Mark adds the condition DisruptionTarget to a Pod as Evict does, and returns the Pod in its new state. If Evict is
// then called with that Pod, it does not mark the Pod again. If the Pod is gone, the error is nil.
func Mark(ctx context.Context, handle fwk.Handle, by *Preemptor, pod *corev1.Pod) (*corev1.Pod, error) {
	status := pod.Status.DeepCopy()
	changed := podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.DisruptionTarget),
		Message:            fmt.Sprintf("%s: preempting to accommodate a higher priority %s", by.Scheduler, by.Kind),
	})
	if !changed {
		return pod, nil
	}
	client := newOnlyPodClient(handle.ClientSet(), pod)
	err := schedutil.PatchPodStatus(ctx, client, pod.Name, pod.Namespace, &pod.Status, status)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("marking %s as disrupted: %w", klog.KObj(pod), err)
	}
	return client.pod.Pod, nil
}

// Object is an object of the API, of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// executorPreemptor adapts a Preemptor to the executor.
type executorPreemptor struct {
	by *Preemptor
}

var _ preemption.ExecutorPreemptor = executorPreemptor{}

func (p executorPreemptor) GetName() string              { return p.by.Object.GetName() }
func (p executorPreemptor) GetNamespace() string         { return p.by.Object.GetNamespace() }
func (p executorPreemptor) UID() types.UID               { return p.by.Object.GetUID() }
func (p executorPreemptor) SchedulerName() string        { return p.by.Scheduler }
func (p executorPreemptor) Pods() map[string]*corev1.Pod { return nil }
func (p executorPreemptor) Priority() int32              { return p.by.Priority }
func (p executorPreemptor) Type() string                 { return p.by.Kind }
func (p executorPreemptor) Obj() runtime.Object          { return p.by.Object }

// victimOn is a candidate for the executor, which asks only for the node.
type victimOn string

func (v victimOn) Name() string                 { return string(v) }
func (v victimOn) Victims() *extenderv1.Victims { return &extenderv1.Victims{} }
func (v victimOn) NumPodGroupDisruptions() int  { return 0 }
