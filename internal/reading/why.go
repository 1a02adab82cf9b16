// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/internal/why"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// Why says why a Framework, or a PodGroup of that name, is not running. The cluster is only read where it is the
// gang that waits. It is an error if there is neither.
func (r *Reader) Why(ctx context.Context, key dialect.Key) (answers.Why, error) {
	objects, err := r.Objects(ctx, key.Namespace, key.Name)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return answers.Why{}, err
	}
	var tree *view.Tree
	if err == nil {
		tree = view.OfFramework(objects, time.Now())
		if answer, known := why.Before(tree); known {
			return answer, nil
		}
	}
	if tree != nil && tree.Attempt.Gang == nil {
		return why.Tasks(tree, time.Now()), nil
	}
	snapshot, listed := r.Snapshot(ctx, key.Namespace)
	if listed != nil {
		return answers.Why{}, listed
	}
	answer := whatif.Why(snapshot, GangNamed(snapshot, key.Namespace, key.Name))
	switch {
	case answer.Reason != answers.ReasonNotFound:
		return answer, nil
	case tree != nil:
		return why.Tasks(tree, time.Now()), nil
	default:
		return answer, err
	}
}
