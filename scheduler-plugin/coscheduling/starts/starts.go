// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package starts writes into waiting PodGroups when they are expected to start. Package whatif computes the times from
// the informers' caches, outside of the scheduling goroutine.
package starts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	applyv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// FieldManager is the field manager for expected starts, which owns no other field.
const FieldManager = dialect.Writer + "-starts"

// budget is the longest time for one computation of the starts. share limits the part of all time that is spent on
// computing to 1/share.
const (
	budget = 5 * time.Second
	share  = 20
)

// writeTimeout limits a write.
const writeTimeout = 5 * time.Second

// Teller writes into PodGroups when they will start.
type Teller struct {
	// Snapshot returns what is known of the cluster. Reserved returns the nodes that are reserved for each gang.
	Snapshot func() (*whatif.Snapshot, error)
	Reserved func() map[dialect.Key][]string
	Client   schedulingclient.Interface
	// Interval is how often the starts are computed.
	Interval time.Duration

	reported map[types.UID]reported
	history  history
}

// Run writes expected starts until ctx ends.
func (t *Teller) Run(ctx context.Context) {
	for wait := t.Interval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		computed, err := t.tell(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Telling pod groups when they will start failed")
		}
		wait = max(t.Interval, share*computed)
	}
}

// tell computes when all waiting groups will start, and writes the times that have changed into the groups. The result is
// how long the computation took; the writes, which a slow API server may delay, do not count.
func (t *Teller) tell(ctx context.Context) (computed time.Duration, err error) {
	begun := time.Now()
	snapshot, err := t.Snapshot()
	if err != nil {
		return time.Since(begun), err
	}
	t.history.look(snapshot)
	snapshot.Runs = t.history.runs
	snapshot.Over = func() bool { return ctx.Err() != nil || time.Since(begun) > budget }
	expected := whatif.ExpectedStarts(snapshot, t.Reserved())
	computed = time.Since(begun)
	before, failed := t.reported, make(map[string]error)
	t.reported = make(map[types.UID]reported)
	for _, group := range snapshot.Groups {
		if group.Key.Dialect != dialect.Own || group.IsImplied() {
			continue
		}
		last, known := before[group.UID]
		if !known {
			last = reportedBy(group.ExpectedStart)
		}
		now, waits := expected[group.Key]
		if waits && failed[group.Key.Namespace] == nil && last.isNews(&now, group.Created, snapshot.Now) {
			if err := t.write(ctx, group, &now); err != nil {
				failed[group.Key.Namespace] = err // a webhook may hang: other groups of the namespace wait for the next round
			} else {
				last = reported{now, snapshot.Now}
			}
		}
		if waits || known {
			t.reported[group.UID] = last
		}
	}
	return computed, errors.Join(slices.Collect(maps.Values(failed))...)
}

// write writes into a group when the group is expected to start, and removes what the group had before if nothing is known
// any more. The error is nil if the group does not exist any more, or if another group has its name.
func (t *Teller) write(ctx context.Context, group *dialect.Group, expected *whatif.Expected) error {
	status, start := applyv1alpha1.PodGroupStatus(), applyv1alpha1.ExpectedStart()
	if !expected.Latest.IsZero() {
		status.WithExpectedStart(start.WithLatest(metav1.NewTime(expected.Latest.UTC().Truncate(time.Second))))
	}
	if !expected.Probable.IsZero() {
		status.WithExpectedStart(start.WithProbable(metav1.NewTime(expected.Probable.UTC().Truncate(time.Second))))
	}
	apply := applyv1alpha1.PodGroup(group.Key.Name, group.Key.Namespace).WithUID(group.UID).WithStatus(status)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := t.Client.SchedulingV1alpha1().PodGroups(group.Key.Namespace).ApplyStatus(ctx, apply, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the expected start of PodGroup %s: %w", group.Key, err)
	}
	return nil
}
