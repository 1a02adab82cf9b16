// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package starts tells PodGroups that wait when they will start. What it tells is found out by package whatif, from what informers
// have, beside the scheduling goroutine.
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

// FieldManager is the name under which expected starts are written. It has no other field.
const FieldManager = dialect.Writer + "-starts"

// budget is how long it may take to find out when gangs start. share is which part of the time that may be.
const (
	budget = 5 * time.Second
	share  = 20
)

// writeTimeout bounds a write.
const writeTimeout = 5 * time.Second

// Teller tells PodGroups when they will start.
type Teller struct {
	// Snapshot returns what is known of the cluster, and Reserved which nodes are reserved for gangs.
	Snapshot func() (*whatif.Snapshot, error)
	Reserved func() map[dialect.Key][]string
	Client   schedulingclient.Interface
	// Interval is in what time it is found out anew.
	Interval time.Duration

	told    map[types.UID]told
	history history
}

// Run tells until ctx ends.
func (t *Teller) Run(ctx context.Context) {
	for wait := t.Interval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		begun := time.Now()
		if err := t.tell(ctx, begun.Add(budget)); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Telling pod groups when they will start failed")
		}
		wait = max(t.Interval, share*time.Since(begun))
	}
}

// tell tells all groups for which there is news.
func (t *Teller) tell(ctx context.Context, until time.Time) error {
	snapshot, err := t.Snapshot()
	if err != nil {
		return err
	}
	t.history.look(snapshot)
	snapshot.Runs = t.history.runs
	snapshot.Over = func() bool { return ctx.Err() != nil || time.Now().After(until) }
	expected := whatif.ExpectedStarts(snapshot, t.Reserved())
	before, failed := t.told, make(map[string]error)
	t.told = make(map[types.UID]told)
	for _, group := range snapshot.Groups {
		if group.Key.Dialect != dialect.Own || group.IsImplied() {
			continue
		}
		last, known := before[group.UID]
		if !known {
			last = toldBy(group.ExpectedStart)
		}
		now, waits := expected[group.Key]
		if waits && failed[group.Key.Namespace] == nil && last.isNews(&now, group.Created, snapshot.Now) {
			if err := t.write(ctx, group, &now); err != nil {
				failed[group.Key.Namespace] = err // a webhook may hang: the others of the namespace have to wait
			} else {
				last = told{now, snapshot.Now}
			}
		}
		if waits || known {
			t.told[group.UID] = last
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}

// write writes when a group is expected to start. That the group is gone is no error.
func (t *Teller) write(ctx context.Context, group *dialect.Group, expected *whatif.Expected) error {
	start := applyv1alpha1.ExpectedStart()
	if !expected.Latest.IsZero() {
		start.WithLatest(metav1.NewTime(expected.Latest.UTC().Truncate(time.Second)))
	}
	if !expected.Probable.IsZero() {
		start.WithProbable(metav1.NewTime(expected.Probable.UTC().Truncate(time.Second)))
	}
	apply := applyv1alpha1.PodGroup(group.Key.Name, group.Key.Namespace).WithUID(group.UID).
		WithStatus(applyv1alpha1.PodGroupStatus().WithExpectedStart(start))
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := t.Client.SchedulingV1alpha1().PodGroups(group.Key.Namespace).ApplyStatus(ctx, apply, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("writing the expected start of PodGroup %s: %w", group.Key, err)
	}
	return nil
}
