// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	typedschedulingv1alpha1 "github.com/lockstep-k8s/lockstep/client/clientset/versioned/typed/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// result is what came of one action. It went through if there is no error.
type result struct {
	action lifecycle.Action
	// outcome is what the next decision is told.
	outcome *lifecycle.Outcome
	// podGroup is as it is after a write.
	podGroup *schedulingv1alpha1.PodGroup
	// configMap and pod are there, by a live look.
	configMap *corev1.ConfigMap
	pod       *corev1.Pod
	// gone is the UID of an object that a live look did not find.
	gone types.UID
	err  error
}

// executor runs actions of one Framework. Several goroutines may use it.
type executor struct {
	controller *Controller
	entry      *frameworkEntry
	// taken are names that a foreign object had when it was last looked at.
	taken map[string]bool
}

func (e *executor) pods() typedcorev1.PodInterface {
	return e.controller.kube.CoreV1().Pods(e.entry.Namespace)
}

func (e *executor) configMaps() typedcorev1.ConfigMapInterface {
	return e.controller.kube.CoreV1().ConfigMaps(e.entry.Namespace)
}

func (e *executor) podGroups() typedschedulingv1alpha1.PodGroupInterface {
	return e.controller.lockstep.SchedulingV1alpha1().PodGroups(e.entry.Namespace)
}

// do runs one action. A panic is an error of this action.
func (e *executor) do(ctx context.Context, action lifecycle.Action) (r result) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	r.action = action
	defer func() {
		if value := recover(); value != nil {
			e.controller.metrics.panics.Inc()
			r.err = fmt.Errorf("a fault of the controller: %v", value)
			klog.FromContext(ctx).Error(r.err, "Panicked", "action", action, "stack", string(debug.Stack()))
		}
	}()
	if e.taken[action.Name] {
		if r.err = e.lookAtName(ctx, action); r.err != nil {
			return r
		}
	}
	e.run(ctx, &r)
	return r
}

// lookAtName looks whether a name is still taken. That is one request, and to find it
// out by a creation would be two.
func (e *executor) lookAtName(ctx context.Context, action lifecycle.Action) error {
	var err error
	switch action.Kind {
	case lifecycle.CreateConfigMap:
		_, err = ofOwner(ctx, e.configMaps(), "ConfigMap", action)
	case lifecycle.CreatePodGroup:
		_, err = e.podGroupInPlace(ctx, action)
	case lifecycle.CreatePod:
		_, err = e.podInPlace(ctx, action)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (e *executor) run(ctx context.Context, r *result) {
	action := r.action
	switch action.Kind {
	case lifecycle.CreateConfigMap:
		e.createConfigMap(ctx, r)
	case lifecycle.DeleteConfigMap:
		r.err = deleteOne(ctx, e.configMaps(), action, deleteOptions(action.UID, metav1.DeletePropagationForeground))
	case lifecycle.ConfirmNoConfigMap:
		r.configMap, r.err = presentOf(ctx, e.configMaps(), action)
	case lifecycle.CreatePodGroup:
		e.createPodGroup(ctx, r)
		return
	case lifecycle.UpdatePodGroup:
		r.podGroup, r.err = e.updatePodGroup(ctx, action.PodGroup)
		return
	case lifecycle.CreatePod:
		e.createPod(ctx, r)
	case lifecycle.DeletePod:
		r.err = deleteOne(ctx, e.pods(), action, deleteOptions(action.UID, metav1.DeletePropagationBackground))
	case lifecycle.ForceDeletePod:
		r.err = forceDelete(ctx, e.pods(), action)
	case lifecycle.ConfirmNoPod:
		r.pod, r.err = presentOf(ctx, e.pods(), action)
	case lifecycle.DeleteFramework:
		r.err = deleteOne(ctx, frameworksOf{e.controller.frameworkClient, e.entry.Namespace}, action,
			deleteOptions(action.UID, metav1.DeletePropagationForeground))
	case lifecycle.LookForConfigMap:
		r.configMap, r.gone, r.err = lookFor(ctx, e.configMaps(), action)
		return
	case lifecycle.LookForPod:
		r.pod, r.gone, r.err = lookFor(ctx, e.pods(), action)
		return
	default:
		r.err = fmt.Errorf("unknown action %q", action.Kind)
	}
	found := r.configMap != nil || r.pod != nil
	if r.err == nil && !found && r.outcome == nil {
		r.outcome = &lifecycle.Outcome{Action: action}
	}
}

// createConfigMap creates the ConfigMap of an attempt, or finds the one that is there.
func (e *executor) createConfigMap(ctx context.Context, r *result) {
	created, err := e.configMaps().Create(ctx, r.action.ConfigMap, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		r.configMap, r.err = ofOwner(ctx, e.configMaps(), "ConfigMap", r.action)
	case err != nil:
		r.err = err
	default:
		r.outcome = &lifecycle.Outcome{Action: r.action, UID: created.UID}
	}
}

// createPodGroup creates the PodGroup of an attempt, or finds the one that is there.
func (e *executor) createPodGroup(ctx context.Context, r *result) {
	r.podGroup, r.err = e.podGroups().Create(ctx, r.action.PodGroup, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(r.err) {
		return
	}
	if r.podGroup, r.err = e.podGroupInPlace(ctx, r.action); apierrors.IsNotFound(r.err) {
		r.podGroup, r.err = e.podGroups().Create(ctx, r.action.PodGroup, metav1.CreateOptions{})
	}
}

// podGroupInPlace returns the PodGroup that has the name of one to be created, if it has
// the right owner. One of the Framework that nobody owns, because its ConfigMap was
// deleted and orphaned it, is deleted as its Pods are: then none is found.
func (e *executor) podGroupInPlace(ctx context.Context, action lifecycle.Action) (*schedulingv1alpha1.PodGroup, error) {
	group, err := ofOwner(ctx, e.podGroups(), "PodGroup", action)
	orphan := e.orphan(err)
	if orphan == nil {
		return group, err
	}
	if err := deleteOne(ctx, e.podGroups(), lifecycle.Action{Name: action.Name, UID: orphan.GetUID()},
		deleteOptions(orphan.GetUID(), metav1.DeletePropagationBackground)); err != nil {
		return nil, fmt.Errorf("deleting the PodGroup %s that nobody owns: %w", action.Name, err)
	}
	return nil, apierrors.NewNotFound(schedulingv1alpha1.Resource("podgroups"), action.Name)
}

// podInPlace returns the Pod that has the name of one to be created, if it has the right
// owner, or is one of the Framework that nobody owns: that is a leftover.
func (e *executor) podInPlace(ctx context.Context, action lifecycle.Action) (*corev1.Pod, error) {
	pod, err := ofOwner(ctx, e.pods(), "Pod", action)
	if orphan, ok := e.orphan(err).(*corev1.Pod); ok {
		return orphan, nil
	}
	return pod, err
}

// orphan is the object that has taken a name if it is one of the Framework that nobody
// controls any more. Nil if it is not.
func (e *executor) orphan(err error) metav1.Object {
	var taken *nameTakenError
	if !errors.As(err, &taken) || taken.controller != "" ||
		taken.object.GetAnnotations()[frameworkv1.KeyFrameworkUID] != string(e.entry.UID) {
		return nil
	}
	return taken.object
}

// createPod creates the Pod of a task, or finds the one that is there. A refusal for
// good is an outcome only if there is none: the Pod of a creation whose answer was lost may
// run. Admission comes before the name is looked at, and the template may have changed.
func (e *executor) createPod(ctx context.Context, r *result) {
	pod, err := r.action.Pod()
	if err != nil {
		e.refusePod(ctx, r, lifecycle.PodTemplateRefusal(err))
		return
	}
	created, err := e.pods().Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		r.outcome = &lifecycle.Outcome{Action: r.action, UID: created.UID}
		return
	}
	switch refused := lifecycle.PodCreationRefusal(err); {
	case apierrors.IsAlreadyExists(err):
		r.pod, r.err = e.podInPlace(ctx, r.action)
	case refused == nil:
		r.err = err
	default:
		e.refusePod(ctx, r, refused)
	}
}

// refusePod makes a refusal for good the outcome of a creation, unless the Pod is there.
func (e *executor) refusePod(ctx context.Context, r *result, refused *frameworkv1.CompletionStatus) {
	if r.pod, r.err = presentOf(ctx, e.pods(), r.action); r.err == nil && r.pod == nil {
		r.outcome = &lifecycle.Outcome{Action: r.action, Refused: refused}
	}
}

// updatePodGroup writes the minimums of a PodGroup. It is a patch because
// others write the status of a PodGroup at any time, which must not stand in the
// way.
func (e *executor) updatePodGroup(ctx context.Context, group *schedulingv1alpha1.PodGroup) (*schedulingv1alpha1.PodGroup, error) {
	minRoleMember := group.Spec.MinRoleMember
	if minRoleMember == nil {
		minRoleMember = map[string]int32{}
	}
	patch, err := json.Marshal([]patchOperation{
		{Op: "replace", Path: "/metadata/uid", Value: group.UID},
		{Op: "add", Path: "/spec/minMember", Value: group.Spec.MinMember},
		{Op: "add", Path: "/spec/minRoleMember", Value: minRoleMember},
	})
	if err != nil {
		return nil, err
	}
	return e.podGroups().Patch(ctx, group.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

// patchOperation is one step of a JSON patch.
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// getDeleter is what of a client it takes to make certain that an object is
// gone.
type getDeleter[T metav1.Object] interface {
	getter[T]
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// deleteOne deletes an object by its UID. One that is not there, or that another of
// the same name has replaced, is deleted already.
func deleteOne[T metav1.Object](ctx context.Context, client getDeleter[T], action lifecycle.Action, options metav1.DeleteOptions) error {
	switch err := client.Delete(ctx, action.Name, options); {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		// The UID is another one, most likely. But a webhook may say this too.
		if gone := confirmGone(ctx, client, action.Name, action.UID); gone != nil {
			return fmt.Errorf("%w, and %w", err, gone)
		}
		return nil
	default:
		return err
	}
}

// forceDelete deletes a Pod without waiting for its node. It returns an error
// while something else, a finalizer, holds it.
func forceDelete[T metav1.Object](ctx context.Context, client getDeleter[T], action lifecycle.Action) error {
	options := deleteOptions(action.UID, metav1.DeletePropagationBackground)
	options.GracePeriodSeconds = ptr.To[int64](0)
	if err := deleteOne(ctx, client, action, options); err != nil {
		return err
	}
	return confirmGone(ctx, client, action.Name, action.UID)
}

func confirmGone[T metav1.Object](ctx context.Context, client getter[T], name string, uid types.UID) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking whether it is gone: %w", err)
	case live.GetUID() != uid:
		return nil
	default:
		return errors.New("it is still there")
	}
}

func deleteOptions(uid types.UID, propagation metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{
		Preconditions:     metav1.NewUIDPreconditions(string(uid)),
		PropagationPolicy: &propagation,
	}
}
