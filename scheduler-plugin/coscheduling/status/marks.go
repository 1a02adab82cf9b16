// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// marksAtATime is the largest number of Pods of one gang in the queue, so that Pods of the namespace's other gangs are
// marked in between. moreMarks is how long after these the gang's next Pods are added.
const (
	marksAtATime = 500
	moreMarks    = time.Second
)

// maxMarkEvents is how many of the members that are queued together get an event that says why they wait for room. All
// of them get the condition.
const maxMarkEvents = 10

// unmarked is a Pod of a gang that is to be marked. event reports whether the Pod also gets an event if it waits for
// room.
type unmarked struct {
	gang  dialect.Key
	pod   types.UID
	event bool
}

// queued returns the key of the Pod in the queue.
func (u unmarked) queued() fair.Key {
	kind := []byte{byte(u.gang.Dialect), '-'}
	if u.event {
		kind[1] = 'e'
	}
	return fair.Key{Kind: string(kind) + u.gang.Name, ObjectName: cache.NewObjectName(u.gang.Namespace, string(u.pod))}
}

// unmarkedIn returns the Pod of a key.
func unmarkedIn(key fair.Key) unmarked {
	return unmarked{gang: dialect.Key{Dialect: dialect.Dialect(key.Kind[0]), Namespace: key.Namespace, Name: key.Kind[2:]},
		pod: types.UID(key.Name), event: key.Kind[1] == 'e'}
}

// gangOfUnmarked returns the key of a queued Pod's gang. The Pods of a gang share one back-off, because a failure to
// mark one of them probably concerns them all.
func gangOfUnmarked(key fair.Key) fair.Key { return queued(unmarkedIn(key).gang) }

// markAll queues Pods of a gang to be marked.
func (r *Reporter) markAll(gang dialect.Key, pods []types.UID) {
	for i, uid := range pods[:min(len(pods), marksAtATime)] {
		r.marks.queue.Add(unmarked{gang, uid, i < maxMarkEvents}.queued())
	}
	if len(pods) > marksAtATime {
		r.groups.after(gang, moreMarks)
	}
}

// mark sets PodScheduled=False on a waiting Pod, unless the Pod has that condition with the same reason, and sets or
// removes the Pod's nomination. It also records an event for a new condition.
func (r *Reporter) mark(ctx context.Context, key fair.Key) error {
	of := unmarkedIn(key)
	gang, waiting, ok := r.gangs.LookAt(of.gang, of.pod)
	if !ok {
		return nil
	}
	pod := waiting.Pod
	var condition *corev1.PodCondition
	mark, tells := gang.MarkOf(waiting)
	if tells = tells && !news.IsMarked(pod, mark.Reason); tells {
		condition = &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: mark.Reason, Message: mark.Message}
	}
	node, changes := gang.Nomination(waiting)
	if !changes {
		node = pod.Status.NominatedNodeName
	}
	if !tells && !changes {
		return nil
	}
	if err := r.write(ctx, pod, condition, node); err != nil {
		return r.failed(of.gang, pod, err)
	}
	if tells && mark.Event && (of.event || mark.Reason != corev1.PodReasonUnschedulable) {
		r.record(ctx, pod, news.Event{Kind: corev1.EventTypeWarning, Reason: "FailedScheduling", Message: mark.Message})
	}
	return nil
}

func (r *Reporter) write(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition, node string) error {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTime)
	defer cancel()
	return kube.WriteWait(ctx, r.pods, pod, condition, node)
}

// failed returns the error to report for a Pod that could not be marked. The result is nil if the Pod is gone or has
// changed, because the Pod is then queued again. It is also nil for an invalid request if the Pod no longer waits: the
// Pod was bound meanwhile.
func (r *Reporter) failed(gang dialect.Key, pod *corev1.Pod, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if _, _, waits := r.gangs.LookAt(gang, pod.UID); apierrors.IsInvalid(err) && !waits {
		return nil
	}
	return fmt.Errorf("marking %s as unschedulable: %w", klog.KObj(pod), err)
}
