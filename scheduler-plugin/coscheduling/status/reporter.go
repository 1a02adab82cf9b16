// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	applyv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
	schedulingclient "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// FieldManager is the field manager of the plugin's writes to the status of groups.
const FieldManager = dialect.Writer

// groupWriters and markWriters are the numbers of goroutines that write about gangs, and that mark and nominate
// members. They are small because bindings use the same API server and come first, and because marks are never urgent:
// a cluster autoscaler looks every ten seconds. While members are being bound, only one goroutine of each kind works.
// All of them may work for one namespace, or mark the Pods of one gang.
const (
	groupWriters = 4
	markWriters  = 2
	restPeriod   = 20 * time.Millisecond
)

const (
	// conflictPause is how long to wait after a conflict before the next write. The watch may never show the version
	// that the scheduler waits for.
	conflictPause = time.Second
)

// Gangs provides the state of gangs. It is safe for concurrent use.
type Gangs interface {
	// Look returns the present state of a gang. It returns false if nothing may be reported, because the gang is
	// unknown, the initial lists are not complete, or another scheduler leads.
	Look(key dialect.Key) (news.Gang, bool)
	// LookAt returns a waiting Pod, and the state of the Pod's gang without the gang's other Pods. It returns false if
	// the Pod no longer waits, or if nothing may be reported.
	LookAt(key dialect.Key, pod types.UID) (news.Gang, news.Pod, bool)
	// Remember stores what was written about a group.
	Remember(group *dialect.Group, record news.Record)
}

// Reporter writes the state of gangs to the API server:
//
//   - the conditions of PodGroups, or the status of groups of other APIs
//   - once for each member that waits for room, PodScheduled=False, which cluster autoscalers look for, and the nominated
//     node
//   - for Pods that wait for something else, the reason
//
// The Reporter works outside of the scheduling goroutine. If a gang is queued twice before it is handled, there is one
// write.
type Reporter struct {
	gangs  Gangs
	client schedulingclient.Interface
	// foreign is the client for groups of other APIs. lacksStatus reports that the last write of a status had to be
	// made to the object itself, because its kind has no status subresource.
	foreign     dynamic.Interface
	lacksStatus atomic.Bool
	pods        kubernetes.Interface
	recorder    events.EventRecorderLogger
	// binding reports whether members are being bound.
	binding func() bool
	// groups is the queue of gangs whose conditions are to be written. marks is the queue of waiting Pods whose
	// condition PodScheduled is to say why they wait.
	groups, marks *work
}

// NewReporter returns a Reporter. Most of its workers rest while binding returns true.
func NewReporter(gangs Gangs, client schedulingclient.Interface, foreign dynamic.Interface, pods kubernetes.Interface, recorder events.EventRecorderLogger,
	binding func() bool) *Reporter {
	r := &Reporter{
		gangs:    gangs,
		client:   client,
		foreign:  foreign,
		pods:     pods,
		recorder: recorder,
		binding:  binding,
	}
	r.groups = newWork("lockstep_pod_group_conditions", groupWriters, fair.NewBackoff(50*time.Millisecond, 30*time.Second), itself, r.reportOn)
	r.marks = newWork("lockstep_unschedulable_members", markWriters, fair.NewBackoff(time.Second, time.Minute), gangOfUnmarked, r.mark)
	return r
}

// Report makes the Reporter look at a gang after d. Report does not block.
func (r *Reporter) Report(gang dialect.Key, d time.Duration) {
	r.groups.after(gang, d)
}

// Run writes until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { r.groups.run(ctx, groupWriters, r.binding) })
	both.Go(func() { r.marks.run(ctx, markWriters, r.binding) })
	both.Wait()
}

// reportOn brings a PodGroup's conditions up to date, and queues the gang's Pods that are to be marked. At any time,
// only one worker handles a gang, so the gang's record has one writer.
func (r *Reporter) reportOn(ctx context.Context, queued fair.Key) error {
	key := gangIn(queued)
	gang, ok := r.gangs.Look(key)
	if !ok {
		return nil
	}
	if err := r.tell(ctx, &gang); err != nil {
		return err
	}
	if warnings := gang.Warnings(); len(warnings) > 0 {
		for _, w := range warnings {
			if w.Pod != nil {
				r.record(ctx, w.Pod, w.Event())
			} else {
				r.recordEvent(ctx, &gang, w.Event())
			}
		}
		gang.Record.Warned(warnings)
		r.gangs.Remember(gang.Group, gang.Record)
	}
	now := time.Now()
	unmarked, again := gang.Unmarked(now)
	r.markAll(key, unmarked)
	if gang.Renominates(unmarked) {
		gang.Record.Renominated = now
		r.gangs.Remember(gang.Group, gang.Record)
	}
	if again > 0 {
		r.groups.after(key, again)
	}
	return nil
}

// tell writes the conditions of a gang's group, or the status of a group of another API. It records an event if
// conditions change, also if the API has no conditions.
func (r *Reporter) tell(ctx context.Context, gang *news.Gang) error {
	now := time.Now()
	conditions, again := gang.News(now, string(uuid.NewUUID()))
	if again > 0 {
		r.groups.after(gang.Key, again)
	}
	status, again := news.StatusOf(gang, now, conditions)
	if again > 0 {
		r.groups.after(gang.Key, again)
	}
	group, ownVersion := gang.Group, ""
	switch {
	case conditions == nil && status == nil:
		return nil
	case group.Key.Dialect == dialect.Own:
		version, exists, err := r.applyConditions(ctx, group, conditions)
		if err != nil || !exists {
			return err
		}
		ownVersion = version
	case status != nil && gang.YieldsUntil.After(now):
		r.yield(ctx, gang, now)
	case status != nil && !group.LeavesPhase():
		version, exists, err := r.writeStatus(ctx, gang, status)
		if err != nil || !exists {
			return err
		}
		gang.Record.Status, gang.Record.Version, gang.Record.StatusAt = status, version, time.Now()
	}
	if conditions != nil {
		r.recordEvent(ctx, gang, gang.EventOf(conditions)) // for kubectl describe
		gang.Record.Wrote(conditions, ownVersion, now)
	}
	r.gangs.Remember(group, gang.Record)
	return nil
}

// yield leaves the status of a group to another program that keeps overwriting it, and logs that once. The gang is
// reported on again after YieldsUntil.
func (r *Reporter) yield(ctx context.Context, gang *news.Gang, now time.Time) {
	r.groups.after(gang.Key, gang.YieldsUntil.Sub(now))
	if gang.Record.YieldTold.Equal(gang.YieldsUntil) {
		return
	}
	gang.Record.YieldTold = gang.YieldsUntil
	klog.FromContext(ctx).Error(nil, "Another program writes the phase of a PodGroup again and again: its status is left to that for a while, and its gang is placed all the same",
		"podGroup", gang.Key.String(), "program", gang.Group.PhaseBy, "until", gang.YieldsUntil)
}

// applyConditions writes the conditions of a PodGroup of Lockstep. It returns the group's new resource version. exists
// is false if the group is gone, or if another group has its name.
func (r *Reporter) applyConditions(ctx context.Context, group *dialect.Group, conditions []schedulingv1alpha1.PodGroupCondition) (version string, exists bool, err error) {
	apply := applyv1alpha1.PodGroup(group.Key.Name, group.Key.Namespace).WithUID(group.UID)
	status := applyv1alpha1.PodGroupStatus()
	for _, c := range conditions {
		status.WithConditions(applyv1alpha1.PodGroupCondition().
			WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithTransitionID(c.TransitionID).WithLastTransitionTime(c.LastTransitionTime).
			WithObservedGeneration(c.ObservedGeneration))
	}
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
	defer cancel()
	written, err := r.client.SchedulingV1alpha1().PodGroups(group.Key.Namespace).
		ApplyStatus(ctx, apply.WithStatus(status), metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("writing conditions of PodGroup %s: %w", group.Key, err)
	}
	return written.ResourceVersion, true, nil
}

// writeStatus writes the status of a group of another API. It returns the group's new resource version. exists is false
// if the group is gone or has changed.
func (r *Reporter) writeStatus(ctx context.Context, gang *news.Gang, status *dialect.Status) (version string, exists bool, err error) {
	group := gang.Group
	write, err := group.WriteOf(status, gang.Record.VersionOf(group))
	if err != nil {
		return "", false, fmt.Errorf("writing the status of PodGroup %s: %w", group.Key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
	defer cancel()
	patch := func(subresources ...string) (*unstructured.Unstructured, error) {
		return r.foreign.Resource(group.Resource()).Namespace(group.Key.Namespace).
			Patch(ctx, group.Key.Name, write.Type, write.Body, metav1.PatchOptions{FieldManager: FieldManager, Force: write.Force}, subresources...)
	}
	var written *unstructured.Unstructured
	if group.Key.Dialect.MayLackStatus() && r.lacksStatus.Load() {
		if written, err = patch(); err == nil && phaseOf(written) != status.Phase { // the API server has ignored the status: the kind now has a status subresource
			written, err = patch("status")
			r.lacksStatus.Store(err != nil)
		}
	} else if written, err = patch("status"); apierrors.IsNotFound(err) && group.Key.Dialect.MayLackStatus() {
		written, err = patch()
		r.lacksStatus.Store(err == nil)
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil // the group is gone
	case apierrors.IsConflict(err):
		r.conflict(gang)
		return "", false, nil // the group has changed, so the watch causes another report
	case err != nil:
		return "", false, fmt.Errorf("writing the status of PodGroup %s: %w", group.Key, err)
	}
	return written.GetResourceVersion(), true, nil
}

// phaseOf returns the phase in an object, "" for none.
func phaseOf(object *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase
}

// conflict handles a write that was refused because the group has changed. If the status was computed from this
// scheduler's own last write, conflict drops the record of that write and queues the gang. The next write is then
// computed from what the watch shows. After a restore of etcd, the watch never shows the version of the last write.
func (r *Reporter) conflict(gang *news.Gang) {
	if gang.Record.IsAhead(gang.Group) {
		gang.Record.ForgetStatus()
		r.gangs.Remember(gang.Group, gang.Record)
		r.groups.after(gang.Key, conflictPause)
	}
}

// Warn records an event of type Warning on a PodGroup.
func (r *Reporter) Warn(ctx context.Context, group *dialect.Group, reason, message string) {
	r.record(ctx, group.Object(), news.Event{Kind: corev1.EventTypeWarning, Reason: reason, Message: message})
}

// subjectOf returns the object on which events of a gang are recorded: its PodGroup or, without one, the first of its
// Pods. It returns nil if there is neither.
func subjectOf(gang *news.Gang) runtime.Object {
	switch {
	case !gang.Group.IsImplied():
		return gang.Group.Object()
	case gang.Member != nil:
		return gang.Member
	default:
		return nil
	}
}

// recordEvent records an event on the PodGroup of a gang or, without one, on one of its Pods.
func (r *Reporter) recordEvent(ctx context.Context, gang *news.Gang, event news.Event) {
	if subject := subjectOf(gang); subject != nil {
		r.record(ctx, subject, event)
	}
}

// record records an event. If events differ only in their message, the recorder writes only the first and counts the
// others, and users would not see a new message. So the event's action, which users don't look at, gets a checksum of
// the message.
func (r *Reporter) record(ctx context.Context, subject runtime.Object, event news.Event) {
	action := fmt.Sprintf("Scheduling-%08x", crc32.ChecksumIEEE([]byte(event.Message)))
	r.recorder.WithLogger(klog.FromContext(ctx)).Eventf(subject, nil, event.Kind, event.Reason, action, "%s", event.Message)
}
