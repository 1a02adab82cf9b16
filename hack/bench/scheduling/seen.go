// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// leaseName is the lease for which the schedulers of these cases wait.
const leaseName = "bench"

// seen measures from the moment when a scheduler has seen all Pods and may begin. Until
// then somebody else is the leader; so its start and its first lists don't count. It clears
// the stage again.
func (s *stage) seen(ctx context.Context, of scheduler, w objects.Work) (first, last time.Duration, err error) {
	if err := s.createGroups(ctx, w); err != nil {
		return 0, 0, err
	}
	if err := s.createPods(ctx, w); err != nil {
		return 0, 0, err
	}
	leases := s.kube.CoordinationV1().Leases(objects.Namespace)
	now := metav1.NowMicro()
	lease, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("nobody"), LeaseDurationSeconds: ptr.To(int32(3600)), AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("creating the lease: %w", err)
	}
	watcher, err := s.watchBindings(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer watcher.Stop()
	elections, err := leases.Watch(ctx, metav1.ListOptions{ResourceVersion: lease.ResourceVersion,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", leaseName).String()})
	if err != nil {
		return 0, 0, fmt.Errorf("watching the lease: %w", err)
	}
	defer elections.Stop()
	p, err := s.start(ctx, of, "--leader-elect=true", "--leader-elect-retry-period=100ms",
		"--leader-elect-resource-name="+leaseName, "--leader-elect-resource-namespace="+objects.Namespace)
	if err != nil {
		return 0, 0, err
	}
	defer p.Kill()
	if err := p.waitIdle(ctx); err != nil {
		return 0, 0, err
	}
	if err := leases.Delete(ctx, leaseName, metav1.DeleteOptions{}); err != nil {
		return 0, 0, fmt.Errorf("deleting the lease: %w", err)
	}
	begun := make(chan time.Time, 1)
	go func() { // the bindings are read meanwhile
		for event := range elections.ResultChan() {
			if event.Type == watch.Added {
				begun <- time.Now()
				return
			}
		}
		close(begun)
	}()
	b, err := collect(ctx, watcher, w.Total(), p.Done())
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w; its log ends with\n%s", of.program, err, p.logTail())
	}
	start, ok := <-begun
	if !ok {
		return 0, 0, errors.New("the watch of the lease ended")
	}
	p.Kill()
	first, last = b.at[0].Sub(start), b.last().Sub(start)
	s.Logf("%s: from all seen to the first binding %.2f s, to the last of %d %.2f s", of.program, first.Seconds(), w.Total(), last.Seconds())
	if err := s.clear(ctx); err != nil {
		return 0, 0, err
	}
	if err := leases.Delete(ctx, leaseName, metav1.DeleteOptions{}); err != nil {
		return 0, 0, fmt.Errorf("deleting the lease: %w", err)
	}
	return first, last, nil
}

// sinceSeen holds gangs against the same Pods in kube-scheduler, from when all of them are
// seen.
func sinceSeen(gangs, size int) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		work := objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: "1"}
		var firsts, lasts, plainLasts times
		for range s.Rounds {
			_, plainLast, err := s.seen(ctx, plain, pods(gangs*size, plain))
			if err != nil {
				return err
			}
			first, last, err := s.seen(ctx, lockstep, work)
			if err != nil {
				return err
			}
			plainLasts = append(plainLasts, plainLast.Seconds())
			firsts, lasts = append(firsts, first.Seconds()), append(lasts, last.Seconds())
		}
		s.Report(ratio("all seen to first binding", firsts, plainLasts, "kube-scheduler to its last", harness.AtMost(0.3)))
		s.Report(ratio("all seen to last binding", lasts, plainLasts, "kube-scheduler to its last", harness.AtMost(0.6)))
		return nil
	}
}

// tenThousand holds ten thousand Pods in gangs against writing their bindings alone.
func tenThousand(ctx context.Context, s *stage) error {
	const gangs, size = 20, 500
	work := objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: "1"}
	var lasts, alone times
	for range s.Rounds {
		_, last, err := s.seen(ctx, lockstep, work)
		if err != nil {
			return err
		}
		written, err := s.write(ctx, pods(gangs*size, plain), manyNodes)
		if err != nil {
			return err
		}
		lasts, alone = append(lasts, last.Seconds()), append(alone, written.span().Seconds())
	}
	s.Report(ratio("all seen to last binding", lasts, alone, "writing the bindings alone", harness.AtMost(1.25)))
	return nil
}
