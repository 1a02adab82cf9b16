// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// result is what came of one action. No error means success.
type result struct {
	action plan.Action
	// outcome is the result for the next decision.
	outcome *plan.Outcome
	// remembered is an object of a remembered kind after a write.
	remembered metav1.Object
	// found is the object as read from the API server. If `gone` is set too, found is another object that has the same
	// name.
	found metav1.Object
	// gone is the UID of an object that a live look did not find.
	gone types.UID
	err  error
}

// executor runs actions of one owner. Several goroutines may use one executor.
type executor[O Owner, S any] struct {
	owners *Owners[O, S]
	owner  O
	// taken are the objects to create whose names belonged to other owners' objects when they were last read.
	taken map[ref]bool
}

// target is the object of an action, with a client.
type target struct {
	*Kind
	namespace string
}

// do runs one action. A panic is an error of this action.
func (e *executor[O, S]) do(ctx context.Context, action plan.Action) (r result) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	r.action = action
	defer func() {
		if value := recover(); value != nil {
			e.owners.metrics.panics.Inc()
			r.err = fmt.Errorf("internal error of the controller: %v", value)
			klog.FromContext(ctx).Error(r.err, "Panicked", "action", action, "stack", string(debug.Stack()))
		}
	}()
	kind, err := e.owners.writable(action.Kind)
	if err != nil {
		r.err = err
		return r
	}
	on := target{Kind: kind, namespace: e.owner.GetNamespace()}
	if action.Verb == plan.Create && (e.taken[refOf(action)] || kind.Unwatched) {
		if r.found, r.err = e.lookAtName(ctx, on, action); r.err != nil || r.found != nil {
			return r
		}
	}
	e.run(ctx, on, &r)
	return r
}

// lookAtName reads the object that has the name of the object to create; nil if there is none. One read is cheaper
// than a refused creation and the read after it.
func (e *executor[O, S]) lookAtName(ctx context.Context, on target, action plan.Action) (metav1.Object, error) {
	object, err := e.inPlace(ctx, on, action)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return on.reduced(object), nil
	}
}

func (e *executor[O, S]) run(ctx context.Context, on target, r *result) {
	action := r.action
	switch action.Verb {
	case plan.Create:
		e.create(ctx, on, r)
	case plan.Update:
		object, err := update(ctx, on, action)
		on.keep(r, object, err)
	case plan.Delete:
		e.delete(ctx, on, r)
	case plan.ForceDelete:
		r.err = forceDelete(ctx, on, action)
	case plan.ConfirmNo:
		r.found, r.err = presentOf(ctx, on.Client, on.namespace, action)
	case plan.LookFor:
		r.found, r.gone, r.err = lookFor(ctx, on.Client, on.namespace, action)
		return
	default:
		r.err = fmt.Errorf("unknown verb %q", action.Verb)
	}
	if r.err == nil && r.found == nil && r.remembered == nil && r.outcome == nil {
		r.outcome = &plan.Outcome{Action: action}
	}
}

// keep notes an object that was written, or the error.
func (t target) keep(r *result, object metav1.Object, err error) {
	switch {
	case err != nil:
		r.err = err
	case t.Unwatched:
		r.found = t.reduced(object)
	case t.Remembers:
		r.remembered = t.reduced(object)
	default:
		r.outcome = &plan.Outcome{Action: r.action, UID: object.GetUID()}
	}
}

// create creates an object, or finds the existing one.
func (e *executor[O, S]) create(ctx context.Context, on target, r *result) {
	wanted, err := r.action.Object, error(nil)
	if wanted == nil {
		wanted, err = r.action.Build()
	}
	var created metav1.Object
	if err == nil {
		created, err = on.Client.Create(ctx, on.namespace, wanted)
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		e.adopt(ctx, on, r, wanted)
	case err != nil && e.owners.core.RefusesForGood(r.action, err):
		e.refuse(ctx, on, r, err)
	default:
		on.keep(r, created, err)
	}
}

// adopt takes over the existing object with the name of the object to create, if it belongs to the owner. If the object
// is gone meanwhile, adopt creates the object, because no later step does.
func (e *executor[O, S]) adopt(ctx context.Context, on target, r *result, wanted metav1.Object) {
	object, err := e.inPlace(ctx, on, r.action)
	switch {
	case apierrors.IsNotFound(err) && (on.Remembers || on.Unwatched):
		object, err = on.Client.Create(ctx, on.namespace, wanted)
		on.keep(r, object, err)
	case err != nil:
		r.err = err
	default:
		// The object may be older than the cache, which does not show the object because of other labels.
		r.found = on.reduced(object)
	}
}

// inPlace returns the existing object with the action's name, if it belongs to the owner or is left over from it. If
// the core does not need the object, inPlace deletes the object and returns a NotFound error.
func (e *executor[O, S]) inPlace(ctx context.Context, on target, action plan.Action) (metav1.Object, error) {
	object, err := ofOwner(ctx, on.Client, on.namespace, action)
	var taken *nameTakenError
	if !errors.As(err, &taken) || taken.controller != "" {
		return object, err
	}
	switch e.owners.core.FateOf(e.owner, action.Kind, taken.object) {
	case Leftover:
		return taken.object, nil
	case Removable:
		orphan := plan.Action{Name: action.Name, UID: taken.object.GetUID()}
		if err := deleteOne(ctx, on, orphan, deleteOptions(orphan.UID, metav1.DeletePropagationBackground)); err != nil {
			return nil, fmt.Errorf("deleting the %s %s that has no owner: %w", action.Kind, action.Name, err)
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: action.Kind}, action.Name)
	default:
		return nil, err
	}
}

// refuse records a permanent refusal as the outcome of a creation, unless the object exists. The object may exist
// although its creation was refused: an earlier answer may have been lost, and the API server runs admission before it
// checks the name.
func (e *executor[O, S]) refuse(ctx context.Context, on target, r *result, refusal error) {
	if r.found, r.err = presentOf(ctx, on.Client, on.namespace, r.action); r.err == nil && r.found == nil {
		r.outcome = &plan.Outcome{Action: r.action, Refused: refusal}
	}
}

// update changes an object by a patch, so that concurrent writes of other fields cause no conflict.
func update(ctx context.Context, on target, action plan.Action) (metav1.Object, error) {
	operations := append([]plan.Operation{{Op: "replace", Path: "/metadata/uid", Value: action.UID}}, action.Patch...)
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	return on.Client.Patch(ctx, on.namespace, action.Name, types.JSONPatchType, patch)
}

// delete deletes an object, unless the object has changed since the version that the action names.
func (e *executor[O, S]) delete(ctx context.Context, on target, r *result) {
	options := deleteOptions(r.action.UID, r.action.Propagation)
	if r.action.Version != "" {
		options.Preconditions.ResourceVersion = &r.action.Version
	}
	err := deleteOne(ctx, on, r.action, options)
	var changed *changedError
	if errors.As(err, &changed) && on.Remembers && r.action.Version != "" && changed.object.GetResourceVersion() != r.action.Version {
		on.keep(r, changed.object, nil)
		return
	}
	if r.err = err; err == nil && on.Unwatched { // No event will tell of its end.
		r.found, r.gone, r.err = lookFor(ctx, on.Client, on.namespace, r.action)
	}
}

// changedError means that an object was not deleted because it has changed. object is its present version.
type changedError struct{ object metav1.Object }

func (e *changedError) Error() string { return "it is still there" }

// deleteOne deletes the object with a UID. deleteOne returns no error if the object does not exist, even if another
// object has its name.
func deleteOne(ctx context.Context, on target, action plan.Action, options metav1.DeleteOptions) error {
	switch err := on.Client.Delete(ctx, on.namespace, action.Name, options); {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		// The UID is another one, most likely. But a webhook may say this too.
		if gone := confirmGone(ctx, on, action.Name, action.UID); gone != nil {
			return fmt.Errorf("%w, and %w", err, gone)
		}
		return nil
	default:
		return err
	}
}

// forceDelete deletes a Pod without waiting for its node. forceDelete returns an error while something, such as a
// finalizer, keeps the Pod.
func forceDelete(ctx context.Context, on target, action plan.Action) error {
	options := deleteOptions(action.UID, metav1.DeletePropagationBackground)
	options.GracePeriodSeconds = ptr.To[int64](0)
	if err := deleteOne(ctx, on, action, options); err != nil {
		return err
	}
	return confirmGone(ctx, on, action.Name, action.UID)
}

func confirmGone(ctx context.Context, on target, name string, uid types.UID) error {
	live, err := on.Client.Get(ctx, on.namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking whether it is gone: %w", err)
	case live.GetUID() != uid:
		return nil
	default:
		return &changedError{live}
	}
}

func deleteOptions(uid types.UID, propagation metav1.DeletionPropagation) metav1.DeleteOptions {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
	if propagation != "" {
		options.PropagationPolicy = &propagation
	}
	return options
}
