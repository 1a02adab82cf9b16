// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// The priority classes of the case. Victims have the least, the gang is between
// them and the Pods that it may not touch.
const (
	victimClass, gangClass, safeClass = "bench-victim", "bench-gang", "bench-safe"
)

// preemption measures the processor time that a gang of 500 costs which finds
// 1000 nodes full, half of them with Pods that it outranks: from its PodGroup,
// which is the last that it lacks, to the first eviction.
func preemption(ctx context.Context, s *stage) error {
	const size = 500
	for i, name := range []string{victimClass, gangClass, safeClass} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: int32(i+1) * 100}
		if _, err := s.kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating PriorityClass %s: %w", name, err)
		}
	}
	work := gang(size)
	work.CPU, work.PriorityClass = objects.NodeCPU, gangClass
	var planned, evicted times
	for range s.Rounds {
		if err := s.occupy(ctx, size); err != nil {
			return err
		}
		toPlan, toEvict, err := s.preempt(ctx, work)
		if err != nil {
			return err
		}
		s.Logf("planned with %.2f s of CPU, all evicted with %.2f s", toPlan.Seconds(), toEvict.Seconds())
		planned, evicted = append(planned, toPlan.Seconds()), append(evicted, toEvict.Seconds())
	}
	s.Report(harness.Figure{What: "processor time until the first eviction", Value: planned.median(), Unit: "s",
		Bar: harness.AtMost(1), Note: fmt.Sprintf("median of %d", len(planned))})
	s.Report(seconds("processor time until the last eviction", evicted))
	return nil
}

// occupy fills all nodes with a Pod each, the first ones with victims.
func (s *stage) occupy(ctx context.Context, victims int) error {
	return harness.Parallel(ctx, fewNodes, func(ctx context.Context, i int) error {
		filler := objects.Work{Scheduler: plain.schedulerName, Size: 1, CPU: objects.NodeCPU, PriorityClass: safeClass}
		if i < victims {
			filler.PriorityClass = victimClass
		}
		pod := filler.Pod(0)
		pod.Name, pod.Spec.NodeName = fmt.Sprintf("filler-%d", i), objects.NodeName(i)
		if _, err := s.kube.CoreV1().Pods(objects.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("filling a node: %w", err)
		}
		return nil
	})
}

// preempt measures the processor time until the first and until the last victim
// of a gang is to end, and clears the stage again. Nobody plays the nodes, so
// victims stay, and the gang is not bound.
func (s *stage) preempt(ctx context.Context, w objects.Work) (first, last time.Duration, err error) {
	if err := s.createPods(ctx, w); err != nil {
		return 0, 0, err
	}
	watcher, err := s.watchPods(ctx, "")
	if err != nil {
		return 0, 0, err
	}
	defer watcher.Stop()
	p, err := s.start(ctx, lockstep)
	if err != nil {
		return 0, 0, err
	}
	defer p.Kill()
	if err := p.waitIdle(ctx); err != nil {
		return 0, 0, err
	}
	before, err := p.cpu()
	if err != nil {
		return 0, 0, err
	}
	if err := s.createGroups(ctx, w); err != nil {
		return 0, 0, err
	}
	ending := map[string]bool{}
	for len(ending) < w.Total() {
		select {
		case event, ok := <-watcher.ResultChan():
			pod, err := podOf(ctx, event, ok)
			if err != nil {
				return 0, 0, fmt.Errorf("after %d of %d evictions: %w", len(ending), w.Total(), err)
			}
			if pod.DeletionTimestamp != nil {
				ending[pod.Name] = true
			}
			if len(ending) == 1 && first == 0 {
				if first, err = p.cpu(); err != nil {
					return 0, 0, err
				}
			}
		case <-p.Done():
			return 0, 0, fmt.Errorf("the scheduler ended after %d of %d evictions; its log ends with\n%s", len(ending), w.Total(), p.logTail())
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("%d of %d Pods were evicted: %w; the scheduler's log ends with\n%s", len(ending), w.Total(), ctx.Err(), p.logTail())
		}
	}
	if last, err = p.cpu(); err != nil {
		return 0, 0, err
	}
	p.Kill()
	return first - before, last - before, s.clear(ctx)
}
