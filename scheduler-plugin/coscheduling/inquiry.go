// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

const (
	// discoveryPeriod is the time between two requests for a kind that this process does not read.
	discoveryPeriod = 10 * time.Second
	// forbiddenPeriod is the same for a kind that the scheduler may not list.
	forbiddenPeriod = time.Minute
	// settledAnswers is how many answers in a row must say that a kind is served before the program exits to read it.
	// The replicas of an API server learn of a new kind at different times.
	settledAnswers = 3
	// restartPause is the shortest time between two exits for the same kind.
	restartPause = 10 * time.Minute
	// answerTimeout limits two waits at the program's start: until the API server says which kinds it serves, and then
	// until their objects are listed. After that, gangs of the kinds that were listed are planned.
	answerTimeout = time.Minute
)

// service says whether the objects of a kind can be read, or why not.
type service string

const (
	served    service = "served"
	notServed service = "its CustomResourceDefinition is not installed"
	broken    service = "the API server serves it, and can't list its objects for now"
	forbidden service = "lockstep-scheduler may not list its objects: the ClusterRole that allows it is not bound"
)

// inquiry finds out whether the API server serves a kind of PodGroup. Only a kind that is served at the start is read.
// If a kind is served later, or again, the process exits and is restarted (ADR 73).
type inquiry struct {
	dialect dialect.Dialect
	// ask returns whether the objects can be read, and in which version.
	ask func(context.Context) (service, schema.GroupVersionResource, error)
	// tell is called after the start with each new answer except served.
	tell func(service)
	// end ends the program, for a reason.
	end func(reason string)

	// found is the answer at the start, and resource the served resource.
	found    service
	resource schema.GroupVersionResource
	// lost signals attend that the objects can no longer be read.
	lost chan struct{}
}

// begin asks until the API server answers, for at most answerTimeout. If there is no answer, the kind counts as broken.
func (q *inquiry) begin(ctx context.Context) {
	q.lost = make(chan struct{}, 1)
	var last error
	if err := wait.PollUntilContextTimeout(ctx, time.Second, answerTimeout, true, func(ctx context.Context) (bool, error) {
		q.found, q.resource, last = q.ask(ctx)
		return last == nil, nil
	}); err != nil {
		q.found = broken
		klog.FromContext(ctx).Error(last, "PodGroups can't be listed: Pods that name one wait, all others are scheduled", "group", q.dialect.Kind().Group)
	}
}

// attend waits until the kind is served, or served in another version than this process reads, and then ends the
// program. It returns earlier if ctx ends.
func (q *inquiry) attend(ctx context.Context) {
	began := time.Now()
	answer, resource := q.found, q.resource
	for answer == served && resource == q.resource {
		select {
		case <-q.lost:
		case <-ctx.Done():
			return
		}
		if now, in, err := q.ask(ctx); err == nil {
			answer, resource = now, in
		}
		if answer != served {
			q.tell(answer)
		}
	}
	for times := 0; times < settledAnswers || q.found == served && time.Since(began) < restartPause; times++ {
		period := discoveryPeriod
		if answer == forbidden {
			period = forbiddenPeriod
		}
		select {
		case <-time.After(wait.Jitter(period, 0.1)): // replicas of the scheduler do not end together
		case <-ctx.Done():
			return
		}
		now, _, err := q.ask(ctx)
		if err == nil && now != answer {
			if answer = now; now != served {
				q.tell(now)
			}
		}
		if err != nil || now != served {
			times = -1
		}
	}
	q.end("The API server serves PodGroups of " + q.dialect.Kind().Group + " as it did not when the program started: the program ends, to be started again for that")
}

// watch makes an informer report when the objects can no longer be read. The informer goes on and keeps the known
// objects. Gangs are placed again once their PodGroups can be read again, at the latest after a restart of the program.
func (q *inquiry) watch(informer cache.SharedIndexInformer) error {
	return informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
			return
		}
		select {
		case q.lost <- struct{}{}:
		default:
		}
	})
}

// canList reports whether the objects of a resource can be read: whether the resource is served, and whether the
// scheduler may read it. With several namespaces, one that may be read is enough.
func canList(ctx context.Context, namespaces informing.Namespaces, resource schema.GroupVersionResource,
	list func(ctx context.Context, namespace string, limit metav1.ListOptions) error) (service, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
	defer cancel()
	var err error
	for _, namespace := range namespaces.Each() {
		if err = list(ctx, namespace, metav1.ListOptions{Limit: 1}); !apierrors.IsForbidden(err) {
			break
		}
	}
	switch {
	case err == nil:
		return served, nil
	case apierrors.IsNotFound(err):
		return notServed, nil
	case apierrors.IsForbidden(err):
		return forbidden, nil
	default:
		return "", fmt.Errorf("finding out whether the API server serves %s: %w", resource.GroupResource(), err)
	}
}
