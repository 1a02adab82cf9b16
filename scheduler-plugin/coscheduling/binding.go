// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// A binding with a lost answer may have succeeded. The member's room must not be given to others before that is known,
// as the node would be overfilled. So the member stays assumed, and the scheduler reads the Pod until the API server
// answers.

const (
	// bindRetryDelay is how long a failed bind waits before it is tried again; the wait doubles with each further try.
	bindRetryDelay = 100 * time.Millisecond
	// longestLookDelay is the longest wait between two looks at a member.
	longestLookDelay = 10 * time.Second
	// lookTime is how long one look may take.
	lookTime = 10 * time.Second
)

// binding is the binding of one member to its node.
type binding struct {
	// bind writes the binding once.
	bind func(context.Context) *fwk.Status
	p    *kube.Placement
	// slots are shared by all members of a profile.
	slots *slots
	// retries is how often the binding is retried at most.
	retries int32
}

// write writes the binding. It returns a failure only if the member is not bound to the node, or ctx has ended.
func (b binding) write(ctx context.Context) *fwk.Status {
	status, doubtful := b.try(ctx)
	if status.IsSuccess() || !doubtful {
		return status
	}
	switch bound, err := b.look(ctx); {
	case err != nil:
		return fwk.AsStatus(err)
	case bound:
		return nil
	default:
		return status
	}
}

// try writes the binding, and retries on the same node if the API server could not be reached or was overloaded.
// doubtful reports that one of the tries may have succeeded after all.
func (b binding) try(ctx context.Context) (status *fwk.Status, doubtful bool) {
	backoff := wait.Backoff{Duration: bindRetryDelay, Factor: 2, Jitter: 0.1, Steps: int(b.retries) + 1}
	for {
		if err := b.request(ctx, func() { status = b.bindOnce(ctx) }); err != nil {
			return fwk.AsStatus(err), doubtful
		}
		doubtful = doubtful || mayBeBound(status.AsError())
		if status.IsSuccess() || backoff.Steps <= 1 || !retriable(status.AsError()) {
			return status, doubtful
		}
		klog.FromContext(ctx).V(2).Info("Binding failed, trying again", "reason", status.Message())
		if err := sleep(ctx, backoff.Step()); err != nil {
			return fwk.AsStatus(err), doubtful
		}
	}
}

func (b binding) bindOnce(ctx context.Context) *fwk.Status {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
	defer cancel()
	return b.bind(ctx)
}

// look asks the API server, until there is an answer, whether the member is bound to the node. The error is that of
// ctx.
func (b binding) look(ctx context.Context) (bound bool, err error) {
	backoff := wait.Backoff{Duration: bindRetryDelay, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: longestLookDelay}
	for {
		var known bool
		if err := b.request(ctx, func() { bound, known = b.lookOnce(ctx) }); err != nil || known {
			return bound, err
		}
		if err := sleep(ctx, backoff.Step()); err != nil {
			return false, err
		}
	}
}

func (b binding) lookOnce(ctx context.Context) (bound, known bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	pod := b.p.Pod
	live, err := b.p.Profile.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, true
	case err != nil:
		klog.FromContext(ctx).Info("It is not known whether a member is bound, and its room is kept until it is", "reason", err.Error())
		return false, false
	default:
		return live.UID == pod.UID && live.Spec.NodeName == b.p.Node, true
	}
}

// request makes one request, in a slot of the profile.
func (b binding) request(ctx context.Context, do func()) error {
	if err := b.slots.take(ctx, b.p.Pod.Namespace); err != nil {
		return err
	}
	defer b.slots.leave(b.p.Pod.Namespace)
	do()
	return nil
}

func sleep(ctx context.Context, delay time.Duration) error {
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayBeBound reports whether the Pod may be bound although a request to bind it failed: the answer was lost, or the API
// server said that the Pod has a node already, which an earlier request may have set.
func mayBeBound(err error) bool {
	return err != nil && !kube.IsRefusal(err) && !apierrors.IsTooManyRequests(err)
}

// retriable reports whether a failed API call may succeed when repeated.
func retriable(err error) bool {
	return err != nil && !kube.IsRefusal(err) && !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, kube.ErrHasEnded)
}
