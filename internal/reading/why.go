// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/internal/why"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// Why returns why the job or PodGroup of this name is not running. Why looks for a Framework, then a job of another
// kind, then a PodGroup, and returns an error if none exists. Only if the job waits for its gang does Why take a
// snapshot of the cluster.
func (r *Reader) Why(ctx context.Context, n Name) (answers.Why, error) {
	var missing error
	if n.kinds.frameworks {
		objects, err := r.Objects(ctx, n.Namespace, n.Name)
		if err == nil {
			tree := view.OfFramework(objects, time.Now())
			answer, err := r.whyFramework(ctx, n, tree)
			answer.Evidence = append(answer.Evidence, why.UnknownFields(tree)...)
			return answer, err
		}
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return answers.Why{}, err
		}
		missing = err
	}
	named, unread, err := r.jobNamed(ctx, n)
	switch {
	case err != nil:
		return answers.Why{}, err
	case named != nil:
		return r.whyJob(ctx, named)
	case n.kinds.groups:
		snapshot, err := r.Snapshot(ctx, n.Namespace)
		if err != nil {
			return answers.Why{}, err
		}
		if key, found := groupNamed(snapshot, n); found {
			return whatif.Why(snapshot, key), nil
		}
		if snapshot.NoGroups {
			unread = append(unread, schedulingv1alpha1.Resource(schedulingv1alpha1.PodGroupPlural).String())
		}
	}
	if missing == nil || n.kinds.groups && !IsUnserved(missing) && apierrors.IsNotFound(missing) {
		missing = n.missing()
	}
	return answers.Why{}, hidden(missing, unread)
}

func (r *Reader) whyFramework(ctx context.Context, n Name, tree *view.Tree) (answers.Why, error) {
	if answer, known := why.Before(tree); known {
		return answer, nil
	}
	if tree.Attempt.Gang == nil {
		return why.Tasks(tree, time.Now()), nil
	}
	snapshot, err := r.Snapshot(ctx, n.Namespace)
	if err != nil {
		return answers.Why{}, err
	}
	answer := whatif.Why(snapshot, whatif.KeyOf(n.Namespace, tree.Attempt.Gang.Name))
	switch {
	case snapshot.NoPods, snapshot.NoGroups:
		// The Framework's status has copied the state of its gang.
		told := why.Told(tree, time.Now())
		told.Unknown = append(told.Unknown, snapshot.Lacks...)
		return told, nil
	case answer.Reason == answers.ReasonNotFound:
		return why.Tasks(tree, time.Now()), nil
	case answer.Reason == answers.ReasonNotEnoughTasks, answer.Reason == answers.ReasonEnded:
		// The Framework makes the Pods that are missing, and knows when.
		if missing, known := why.Missing(tree); known {
			missing.Evidence = append(missing.Evidence, answer.Message)
			missing.Unknown = append(missing.Unknown, answer.Unknown...)
			return missing, nil
		}
	}
	return answer, nil
}

func (r *Reader) whyJob(ctx context.Context, named *Job) (answers.Why, error) {
	var unread []string
	events, err := r.eventsOf(ctx, named.Namespace, named.Object.GetUID())
	if err != nil {
		unread = append(unread, Unread("Events", err))
	}
	answer, known := why.OfJob(&named.Row, events)
	if answer.Reason == why.ReasonSuspended && named.Object.GetLabels()[frameworkv1.LabelQueue] != "" {
		answer.Reason, answer.Next = why.ReasonQueued, why.NextOfQueue
		answer.Message = "the job is suspended: Kueue has not admitted it yet, or a user has suspended it"
	}
	if !known {
		if answer, err = r.whyGangOf(ctx, named, events); err != nil {
			return answer, err
		}
	}
	answer.Unknown = append(answer.Unknown, unread...)
	answer.Evidence = append(answer.Evidence, r.unknownFields(ctx, named)...)
	return answer, nil
}

// whyGangOf returns the answer for a job that may wait for its gang.
func (r *Reader) whyGangOf(ctx context.Context, named *Job, events []corev1.Event) (answers.Why, error) {
	snapshot, err := r.Snapshot(ctx, named.Namespace)
	if err != nil {
		return answers.Why{}, err
	}
	key, has := named.gang(snapshot)
	switch {
	case !has && snapshot.NoGroups:
		return answers.Why{}, Refused(snapshot)
	case !has:
		answer := why.OfJobWithoutGang(&named.Row, events)
		answer.Unknown = append(answer.Unknown, snapshot.Lacks...)
		return answer, nil
	}
	answer := whatif.Why(snapshot, key)
	// The Pods that are missing are refused, and an event says why.
	if answer.Reason == answers.ReasonNotEnoughTasks {
		answer.Evidence = append(answer.Evidence, why.OfJobWithoutGang(&named.Row, events).Evidence...)
	}
	return answer, nil
}

// resource is that of the kind which was named.
func (n Name) resource() schema.GroupResource {
	if len(n.kinds.jobs) == 1 {
		return n.kinds.jobs[0].Resource.GroupResource()
	}
	return schedulingv1alpha1.Resource(schedulingv1alpha1.PodGroupPlural)
}
