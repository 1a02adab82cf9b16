// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// bindParallelism is how many bindings Lockstep writes at once by default.
const bindParallelism = 64

// bindings are the bindings of Pods in the order in which they were seen.
type bindings struct {
	at []time.Time
	// byGang is how many members of each gang are bound.
	byGang map[string]int
}

// last is when the last of them was seen.
func (b *bindings) last() time.Time { return b.at[len(b.at)-1] }

// span is the time from the first to the last.
func (b *bindings) span() time.Duration { return b.last().Sub(b.at[0]) }

// watchBindings watches from now on for Pods that are bound. The API server sends
// each of them once: when it gets its node it is new to this watch.
func (s *stage) watchBindings(ctx context.Context) (watch.Interface, error) {
	return s.watchPods(ctx, "spec.nodeName!=")
}

// watchPods watches the Pods of a field selector from now on. The API server ends
// a watch to which it can't send fast enough, which happens on a busy machine:
// this one goes on after the last event that came.
func (s *stage) watchPods(ctx context.Context, selector string) (watch.Interface, error) {
	pods := s.kube.CoreV1().Pods(objects.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	begun := false
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		if begun {
			s.Logf("the API server ended the watch of Pods: what is measured now may be seen late")
		}
		begun = true
		options.FieldSelector = selector
		return pods.Watch(ctx, options)
	}}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, source)
	if err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return w, nil
}

// podOf is the Pod of an event of watchPods; ok says whether there was an event.
func podOf(ctx context.Context, event watch.Event, ok bool) (*corev1.Pod, error) {
	if !ok {
		return nil, fmt.Errorf("watching Pods: %w", cmp.Or(ctx.Err(), errors.New("it ended")))
	}
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod {
		return nil, fmt.Errorf("watching Pods: %w", apierrors.FromObject(event.Object))
	}
	return pod, nil
}

// collect reads n bindings from a watch. It gives up when ended is closed.
func collect(ctx context.Context, w watch.Interface, n int, ended <-chan struct{}) (*bindings, error) {
	b := &bindings{byGang: map[string]int{}}
	for len(b.at) < n {
		select {
		case event, ok := <-w.ResultChan():
			pod, err := podOf(ctx, event, ok)
			if err != nil {
				return nil, fmt.Errorf("after %d of %d bindings: %w", len(b.at), n, err)
			}
			if event.Type != watch.Added {
				continue
			}
			b.at = append(b.at, time.Now())
			if group := pod.Labels[schedulingv1alpha1.LabelPodGroup]; group != "" {
				b.byGang[group]++
			}
		case <-ended:
			return nil, fmt.Errorf("the scheduler ended after %d of %d bindings", len(b.at), n)
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d Pods were bound: %w", len(b.at), n, ctx.Err())
		}
	}
	return b, nil
}

// schedule has a scheduler schedule w, of which a number of Pods have room, and
// clears the stage again. took is from the start of the process to the last
// binding.
func (s *stage) schedule(ctx context.Context, of scheduler, w objects.Work, room int) (took time.Duration, b *bindings, err error) {
	if err := s.createGroups(ctx, w); err != nil {
		return 0, nil, err
	}
	if err := s.createPods(ctx, w); err != nil {
		return 0, nil, err
	}
	watcher, err := s.watchBindings(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer watcher.Stop()
	p, err := s.start(ctx, of)
	if err != nil {
		return 0, nil, err
	}
	defer p.Kill()
	if b, err = collect(ctx, watcher, room, p.Done()); err != nil {
		return 0, nil, fmt.Errorf("%s: %w; its log ends with\n%s", of.program, err, p.logTail())
	}
	p.Kill()
	took = b.last().Sub(p.Started)
	s.Logf("%s: %d Pods in %.2f s, from first to last in %.2f s", of.program, room, took.Seconds(), b.span().Seconds())
	return took, b, s.clear(ctx)
}

// write binds w's Pods to the nodes in turn, and does nothing else: what no
// scheduler can be faster than. It has as many requests under way as Lockstep.
func (s *stage) write(ctx context.Context, w objects.Work, nodes int) (*bindings, error) {
	if err := s.createPods(ctx, w); err != nil {
		return nil, err
	}
	watcher, err := s.watchBindings(ctx)
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(bindParallelism + 1) // one of them reads
	var b *bindings
	group.Go(func() (err error) {
		b, err = collect(groupCtx, watcher, w.Total(), nil)
		return err
	})
	for i := range w.Total() {
		group.Go(func() error {
			binding := &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: w.Pod(i).Name, Namespace: objects.Namespace},
				Target:     corev1.ObjectReference{Kind: "Node", Name: objects.NodeName(i % nodes)},
			}
			return s.kube.CoreV1().Pods(objects.Namespace).Bind(groupCtx, binding, metav1.CreateOptions{})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("writing bindings: %w", err)
	}
	s.Logf("writing %d bindings alone: %.2f s from first to last", w.Total(), b.span().Seconds())
	return b, s.clear(ctx)
}
