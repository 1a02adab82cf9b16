// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"golang.org/x/term"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// How often a live view is drawn: at most after redrawLeast, when something has changed, and
// on a terminal after redrawMost, because ages have.
const (
	redrawLeast = 200 * time.Millisecond
	redrawMost  = time.Second
)

// live is a Framework, and what belongs to it, as watches tell.
type live struct {
	frameworks, pods, groups cache.Store
	// changed has a value when something has changed since it was read.
	changed chan struct{}
	// podsUnread and groupsUnread hold a string: why there are none.
	podsUnread, groupsUnread atomic.Value
}

// follow watches a Framework until the context ends.
func (c *cluster) follow(ctx context.Context, name string) *live {
	l := &live{changed: make(chan struct{}, 1)}
	lockstep, namespace := c.lockstep, c.namespace
	named := func(options *metav1.ListOptions, name string) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
	l.frameworks = l.watch(ctx, &frameworkv1.Framework{}, nil,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o, name)
			return lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o, name)
			return lockstep.FrameworkcontrollerV1().Frameworks(namespace).Watch(ctx, o)
		})
	l.groups = l.watch(ctx, &schedulingv1alpha1.PodGroup{}, func(err error) { l.groupsUnread.Store(unread("PodGroups", err)) },
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			named(&o, frameworkv1.PodGroupName(name))
			return lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			named(&o, frameworkv1.PodGroupName(name))
			return lockstep.SchedulingV1alpha1().PodGroups(namespace).Watch(ctx, o)
		})
	l.pods = l.watch(ctx, &corev1.Pod{}, func(err error) { l.podsUnread.Store(unread("Pods", err)) },
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = podSelector(name)
			return c.kube.CoreV1().Pods(namespace).List(ctx, o)
		}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = podSelector(name)
			return c.kube.CoreV1().Pods(namespace).Watch(ctx, o)
		})
	return l
}

// watch keeps a store of what is listed and watched.
func (l *live) watch(ctx context.Context, kind runtime.Object, failed func(error), list cache.ListWithContextFunc, follow cache.WatchFuncWithContext) cache.Store {
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				got, err := list(ctx, o)
				if err != nil && failed != nil && ctx.Err() == nil {
					failed(err)
					l.touch()
				}
				return got, err
			}, WatchFuncWithContext: follow,
		},
		ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { l.touch() },
			UpdateFunc: func(any, any) { l.touch() },
			DeleteFunc: func(any) { l.touch() },
		},
		Transform: withoutManagedFields,
	})
	go informer.RunWithContext(ctx)
	return store
}

// withoutManagedFields spares memory.
func withoutManagedFields(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

func (l *live) touch() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// objects are what is known now. The Framework is nil if it is not there.
func (l *live) objects() view.Objects {
	var o view.Objects
	for _, object := range l.frameworks.List() {
		o.Framework = object.(*frameworkv1.Framework)
	}
	for _, object := range l.groups.List() {
		o.PodGroup = object.(*schedulingv1alpha1.PodGroup)
	}
	for _, object := range l.pods.List() {
		o.Pods = append(o.Pods, *object.(*corev1.Pod))
	}
	for _, why := range []*atomic.Value{&l.podsUnread, &l.groupsUnread} {
		if text, ok := why.Load().(string); ok {
			o.Unread = append(o.Unread, text+".")
		}
	}
	return o
}

// watchTree shows a Framework until it is deleted, or the user has seen enough.
func (s *session) watchTree(ctx context.Context, c *cluster, name string) error {
	// What can't be read, or is not there, is told at once.
	fw, err := c.framework(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := c.follow(ctx, name)
	screen := &screen{session: s}
	seen := false
	for {
		o := followed.objects()
		if o.Framework == nil && !seen {
			o.Framework = fw // The watches are only about to begin.
		}
		if o.Framework == nil || o.Framework.UID != fw.UID {
			s.note("%s was deleted.", name)
			return nil
		}
		seen = seen || len(followed.frameworks.List()) > 0
		if err := screen.show(view.OfFramework(o, now())); err != nil {
			return err
		}
		if err := pause(ctx, redrawLeast); err != nil {
			return err
		}
		var tick <-chan time.Time
		if s.screen != nil {
			tick = time.After(redrawMost - redrawLeast)
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-followed.changed:
		case <-tick:
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-time.After(d):
		return nil
	}
}

// screen is where a tree is drawn again and again.
type screen struct {
	*session
	// drawn is how many lines are there, of a terminal.
	drawn int
	// told are the lines that were last printed, where there is no terminal.
	told map[string]string
}

func (s *screen) show(tree *view.Tree) error {
	if s.screen == nil {
		return s.tell(tree)
	}
	columns, lines, err := term.GetSize(int(s.screen.Fd()))
	if err != nil || columns < 1 || lines < 2 {
		columns, lines = 80, 24
	}
	text, drawn := terminal.Redraw(s.style.Tree(tree, now()), s.drawn, columns, lines)
	s.drawn = drawn
	_, err = io.WriteString(s.out, text)
	return err
}

// tell prints what has changed, a line each, without ages, so that the same is told once.
func (s *screen) tell(tree *view.Tree) error {
	if s.told == nil {
		s.told = map[string]string{}
	}
	for _, line := range terminal.Changes(tree) {
		if s.told[line.Of] == line.Text {
			continue
		}
		s.told[line.Of] = line.Text
		if _, err := fmt.Fprintf(s.out, "%s %s\n", now().Format(time.TimeOnly), line.Text); err != nil {
			return err
		}
	}
	return nil
}
