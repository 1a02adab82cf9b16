// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// apply runs actions of a plan: creations of Pods from slow to fast, so that an API
// server that refuses them is not asked in vain a thousand times; all else at once,
// within bounds. It begins no more once the turn is over. It returns what came of
// them, and which are left.
func (p *pass) apply(ctx context.Context, actions []lifecycle.Action) (outcomes []lifecycle.Outcome, left []lifecycle.Action, err error) {
	c := p.controller
	var creations, others []lifecycle.Action
	for _, action := range actions {
		if action.Kind == lifecycle.CreatePod {
			creations = append(creations, action)
		} else {
			others = append(others, action)
		}
	}
	begun := c.clock.Now()
	e := &executor{controller: c, entry: p.entry}
	var results, created []actionResult
	well := true
	p.turn.await(p.memory.tasks(), func() {
		if len(others) > 0 {
			results = runBatch(ctx, others, cmp.Or(p.pace.Parallel, c.batchSize), p.spent, e.do)
		}
		if len(creations) > 0 {
			created, well = runSlowly(ctx, creations, p.pace.Parallel, c.batchSize, p.spent, e.do)
		}
	})
	left = append(others[len(results):], creations[len(created):]...)
	results = append(results, created...)
	switch {
	case !well:
		p.pace.Parallel = 0
	case len(results) > 1:
		p.pace.Parallel = pacing.Parallel(len(results), c.clock.Since(begun), c.batchSize)
	}
	var errs []error
	for _, result := range results {
		c.metrics.action(result.outcome.Action.Kind, result.err)
		if result.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", result.outcome.Action, result.err))
			continue
		}
		p.memory.remember(result)
		outcomes = append(outcomes, result.outcome)
	}
	return outcomes, left, summarize(errs)
}

// summarize keeps an error that a thousand Pods have in common short.
func summarize(errs []error) error {
	if len(errs) <= 3 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w (and %d more errors)", errors.Join(errs[:3]...), len(errs)-3)
}

// executor runs actions of one Framework.
type executor struct {
	controller *Controller
	entry      *frameworkEntry
}

// do runs one action. Without an error, its outcome counts.
func (e *executor) do(ctx context.Context, action lifecycle.Action) actionResult {
	result := actionResult{outcome: lifecycle.Outcome{Action: action}}
	pods := e.controller.kube.CoreV1().Pods(e.entry.Namespace)
	configMaps := e.controller.kube.CoreV1().ConfigMaps(e.entry.Namespace)
	switch action.Kind {
	case lifecycle.CreateConfigMap:
		created, err := configMaps.Create(ctx, action.ConfigMap, metav1.CreateOptions{})
		if result.err = err; err == nil {
			result.outcome.UID = created.UID
		}
	case lifecycle.DeleteConfigMap:
		result.err = ignoreGone(configMaps.Delete(ctx, action.Name, deleteOptions(action.UID, metav1.DeletePropagationForeground)))
	case lifecycle.CleanConfigMap:
		result.err = clean(ctx, configMaps, action.Name, action.Owner, metav1.DeletePropagationForeground)
	case lifecycle.CreatePodGroup:
		result.podGroup, result.err = e.controller.lockstep.SchedulingV1alpha1().PodGroups(e.entry.Namespace).
			Create(ctx, action.PodGroup, metav1.CreateOptions{})
	case lifecycle.UpdatePodGroup:
		result.podGroup, result.err = e.updatePodGroup(ctx, action.PodGroup)
	case lifecycle.CreatePod:
		result.err = e.createPod(ctx, &result.outcome)
	case lifecycle.DeletePod:
		result.err = ignoreGone(pods.Delete(ctx, action.Name, deleteOptions(action.UID, metav1.DeletePropagationBackground)))
	case lifecycle.ForceDeletePod:
		result.err = forceDelete(ctx, pods, action)
	case lifecycle.CleanPod:
		result.err = clean(ctx, pods, action.Name, action.Owner, metav1.DeletePropagationBackground)
	case lifecycle.DeleteFramework:
		result.err = ignoreGone(e.controller.writer.Delete(ctx, cache.MetaObjectToName(e.entry),
			deleteOptions(action.UID, metav1.DeletePropagationForeground)))
	default:
		result.err = fmt.Errorf("unknown action %q", action.Kind)
	}
	return result
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
	return e.controller.lockstep.SchedulingV1alpha1().PodGroups(group.Namespace).
		Patch(ctx, group.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

// patchOperation is one step of a JSON patch.
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// createPod creates the Pod of a task. A refusal is an outcome, once it is
// certain that there is no Pod all the same.
func (e *executor) createPod(ctx context.Context, outcome *lifecycle.Outcome) error {
	action := outcome.Action
	pod, err := action.Pod()
	if err != nil {
		outcome.Refused = lifecycle.PodTemplateRefusal(err)
		return nil
	}
	pods := e.controller.kube.CoreV1().Pods(e.entry.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err == nil {
		outcome.UID = created.UID
		return nil
	}
	outcome.Refused = lifecycle.PodCreationRefusal(err)
	if outcome.Refused == nil {
		return err
	}
	return clean(ctx, pods, action.Name, action.Owner, metav1.DeletePropagationBackground)
}

// getDeleter is what of a client it takes to make certain that an object is
// gone.
type getDeleter[T metav1.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// clean makes certain, by a live look, that there is no object of a name that
// the owner controls. It returns an error while there is one.
func clean[T metav1.Object](ctx context.Context, client getDeleter[T], name string, owner types.UID, propagation metav1.DeletionPropagation) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for it: %w", err)
	}
	if !controlledBy(live, owner) {
		return nil
	}
	if err := ignoreGone(client.Delete(ctx, name, deleteOptions(live.GetUID(), propagation))); err != nil {
		return fmt.Errorf("deleting it: %w", err)
	}
	return confirmGone(ctx, client, name, live.GetUID())
}

// forceDelete deletes a Pod without waiting for its node. It returns an error
// while something else, a finalizer, holds it.
func forceDelete[T metav1.Object](ctx context.Context, client getDeleter[T], action lifecycle.Action) error {
	options := deleteOptions(action.UID, metav1.DeletePropagationBackground)
	options.GracePeriodSeconds = ptr.To[int64](0)
	if err := ignoreGone(client.Delete(ctx, action.Name, options)); err != nil {
		return err
	}
	return confirmGone(ctx, client, action.Name, action.UID)
}

func confirmGone[T metav1.Object](ctx context.Context, client getDeleter[T], name string, uid types.UID) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking whether it is gone: %w", err)
	case live.GetUID() != uid:
		return nil
	default:
		return fmt.Errorf("it is still there after its deletion was accepted")
	}
}

func deleteOptions(uid types.UID, propagation metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{
		Preconditions:     metav1.NewUIDPreconditions(string(uid)),
		PropagationPolicy: &propagation,
	}
}

// ignoreGone takes the deletion of an object that is not there, or that another
// one of the same name has replaced, for done.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
