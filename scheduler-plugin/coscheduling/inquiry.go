// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/informing"
)

const (
	// discoveryPeriod is how often the API server is asked for a kind, while it does not serve it.
	discoveryPeriod = 10 * time.Second
	// forbiddenPeriod is how often it is asked for a kind that may not be read.
	forbiddenPeriod = time.Minute
	// answerTimeout is how long the API server may take at the start to say whether it serves
	// a kind, and then to list its objects. After that all others go on without this kind.
	answerTimeout = time.Minute
)

// service says whether the objects of a kind can be read, or why they can't.
type service string

const (
	served    service = "served"
	notServed service = "its CustomResourceDefinition is not installed"
	broken    service = "the API server serves it, and can't list its objects for now"
	forbidden service = "lockstep-scheduler may not list its objects: the ClusterRole that allows it is not bound"
)

// inquiry finds out whether the API server serves a kind, and tells of it.
type inquiry struct {
	ctx context.Context
	// ask asks once.
	ask func(context.Context) (service, error)
	// isListed says whether the API server says that it serves the kind. That does not mean that it
	// can list its objects.
	isListed func() (bool, error)
	// tell is told whether the objects can be read, and why not, whenever that has changed.
	tell func(service)

	// found is what the API server has answered at the start, and unanswered why it has not.
	found      service
	unanswered error

	mu sync.Mutex
	// told is what was told last, and isShown says that all objects were shown once that there were.
	told    service
	isShown bool
}

// run asks until the API server answers, for answerTimeout at most.
func (q *inquiry) run() {
	var last error
	q.unanswered = wait.PollUntilContextTimeout(q.ctx, time.Second, answerTimeout, true, func(ctx context.Context) (bool, error) {
		q.found, last = q.ask(ctx)
		return last == nil, nil
	})
	if q.unanswered != nil && last != nil {
		q.unanswered = last
	}
}

// conclude returns what is found once run is over: a kind is broken if the API server says that it
// serves it and has not listed its objects in time. An API server that answers nothing is an error.
func (q *inquiry) conclude() (service, error) {
	if q.unanswered == nil {
		return q.found, nil
	}
	listed, err := q.isListed()
	switch {
	case err != nil:
		return "", errors.Join(q.unanswered, err)
	case listed:
		return broken, nil
	default:
		return notServed, nil
	}
}

// untilServed asks now and then until the objects can be read, given what was found last, and tells what is found. It
// returns false if its context ends before.
func (q *inquiry) untilServed(found service) bool {
	for found != served {
		period := discoveryPeriod
		if found == forbidden {
			period = forbiddenPeriod
		}
		select {
		case <-time.After(period):
		case <-q.ctx.Done():
			return false
		}
		if now, err := q.ask(q.ctx); err == nil {
			found = now
			q.say(found)
		}
	}
	return true
}

// say tells what is found, if that is something else than before.
func (q *inquiry) say(found service) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sayLocked(found)
}

// sayLocked is say for a caller that holds the lock.
func (q *inquiry) sayLocked(found service) {
	if q.told != found {
		q.told = found
		q.tell(found)
	}
}

// show is an informer that was not started, and what is done when its handler was told of all objects that there were.
type show struct {
	cache.SharedIndexInformer
	seen cache.DoneChecker
}

// follow has informers show the objects as long as they can be read, one after the other: the kind may be taken away, or
// the right to read it, and come again. Next makes one that begins with what the one before has shown: meanwhile that
// stays. Listed is called when all is shown that there was by then. What is
// returned is done when listed was called, or when nobody is to wait for that any more.
func (q *inquiry) follow(next func(known []any) (show, error), listed func()) (cache.DoneChecker, error) {
	shows, err := next(nil)
	if err != nil {
		return nil, err
	}
	first := bounded{shows.seen, make(chan struct{})}
	firstDone := sync.OnceFunc(func() { close(first.done) })
	go func() {
		for {
			why := q.watch(shows, func() { listed(); firstDone() })
			if q.ctx.Err() != nil {
				return
			}
			q.say(why)
			if !q.untilServed(why) {
				return
			}
			again, err := next(shows.GetStore().List())
			if err != nil {
				klog.FromContext(q.ctx).Error(err, "Watching failed", "what", first.Name())
				return
			}
			shows = again
		}
	}()
	return inTime(q.ctx, first, q.setInTime), nil
}

// watch runs an informer until its objects can't be read any more, and returns why. All else that goes wrong is logged,
// and tried again.
func (q *inquiry) watch(shows show, listed func()) (why service) {
	ctx, end := context.WithCancel(q.ctx)
	defer end()
	err := shows.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			switch now, failed := q.ask(ctx); {
			case failed != nil:
			case now == served: // in another version, or it may be listed and not watched
				klog.FromContext(ctx).Info("Objects can't be read as before, trying again", "what", shows.seen.Name(), "reason", err.Error())
				return
			default:
				why = now
				end()
				return
			}
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "The informer was started before", "what", shows.seen.Name())
	}
	var seeing sync.WaitGroup
	seeing.Go(func() {
		if cache.WaitFor(ctx, "", shows.seen) {
			q.setShown(listed)
		}
	})
	shows.RunWithContext(ctx)
	end()
	seeing.Wait()
	return why
}

// setShown notes that all is shown that there was.
func (q *inquiry) setShown(listed func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isShown = true
	q.sayLocked(served)
	listed()
}

// setInTime learns whether all was shown in time that there was at the start.
func (q *inquiry) setInTime(shown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !shown && !q.isShown && q.told == served {
		q.sayLocked(broken)
	}
}

// canList says whether the objects of a resource can be read. Whether it is served and whether it
// may be read are one question. Of several namespaces, it is enough if one may be read.
func canList(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespaces informing.Namespaces) (service, error) {
	var err error
	for _, namespace := range namespaces.Each() {
		if _, err = client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1}); !apierrors.IsForbidden(err) {
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

// isListed says whether the API server says that it serves one of some resources.
func isListed(from discovery.DiscoveryInterface, resources ...schema.GroupVersionResource) (bool, error) {
	for _, resource := range resources {
		version := resource.GroupVersion().String()
		list, err := from.ServerResourcesForGroupVersion(version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("asking for the resources of %s: %w", version, err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			return true, nil
		}
	}
	return false, nil
}
