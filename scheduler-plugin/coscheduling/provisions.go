// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// The reasons of the events that tell a group what has become of room for its members to come.
const (
	// ReasonReservationExpired: it is not kept any more, as no member came for too long.
	ReasonReservationExpired = "ReservationExpired"
	// ReasonReservationLost: work that is ahead has it.
	ReasonReservationLost = "ReservationLost"
)

// provisionTerms are what the configuration says of room for members to come, by gang.
func provisionTerms(r *configv1alpha1.Reservation) func(gang dialect.Key) provision.Terms {
	modes := map[string]configv1alpha1.ReservationMode{
		dialect.Own.Kind().Group:              r.Lockstep,
		dialect.SchedulerPlugins.Kind().Group: r.SchedulerPlugins,
		dialect.Volcano.Kind().Group:          r.Volcano,
	}
	return func(gang dialect.Key) provision.Terms {
		mode, known := modes[gang.Dialect.Kind().Group]
		if !known || !r.Enables(gang.Namespace) {
			return provision.Terms{Mode: provision.Off}
		}
		return provision.Terms{Mode: provision.Mode(mode), Longest: r.Timeout.Duration, Percent: int64(*r.NamespacePercent), Preempts: *r.Preemption}
	}
}

// provide is the turn of a gang of which no member waits: room is sought for those that are still to
// come.
func (e *engine) provide(view gangView) {
	logger := klog.LoggerWithValues(klog.FromContext(e.ctx), "podGroup", klog.KRef(view.Key.Namespace, view.Key.Name))
	ctx := klog.NewContext(e.ctx, logger)
	e.freer.turn.Lock()
	defer e.freer.turn.Unlock()
	start := time.Now()
	defer func() { e.gangs.EndSeek(view.Key, time.Since(start)) }()
	if view.Provision == nil {
		return
	}
	e.keeper.prune(ctx)
	own := e.room.Of(view.Key)
	claim, rest, err := e.seekRest(ctx, &view, own)
	if err != nil {
		logger.Error(err, "Seeking room for members of a pod group that are to come failed")
		claim, rest = nil, view.Provision.Rest()
	}
	e.keeper.become(ctx, view.Key, own, claim)
	e.sought(ctx, &view, own, claim, rest, false)
}

func (e *engine) seekRest(ctx context.Context, view *gangView, own room.Claim) (room.Claim, provision.Amounts, error) {
	cluster, err := e.cluster(ctx, view, own, e.plugins[view.Provision.Model.Spec.SchedulerName], false)
	if err != nil {
		return nil, nil, err
	}
	return place.Provide(ctx, view.Gang, cluster)
}

// mayPass says whether a gang may be planned without a look at room that is held back for a gang
// that starves: it waits for the rest of its members, the other one perhaps for the end of this,
// and it has not passed before.
func (e *engine) mayPass(view *gangView) bool {
	return view.Provision != nil && view.Provision.Started && view.Provision.MayPass &&
		slices.ContainsFunc(e.room.InOrder(), func(claim room.Claim) bool { _, starves := claim.(*room.Barrier); return starves })
}

// sought notes for how much room was sought for members to come of a gang, and tells it if what was
// kept for them before is gone to others.
func (e *engine) sought(ctx context.Context, view *gangView, before, after room.Claim, rest provision.Amounts, passed bool) {
	e.gangs.Sought(view.Key, view.Group.UID, rest, passed)
	if is, isKept := after.(*room.Provision); isKept && after != before {
		klog.FromContext(ctx).V(2).Info("Keeping room for members of a pod group that are to come", "room", is.Held().String(), "of", rest.String(), "until", is.End())
	}
	was, wasKept := before.(*room.Provision)
	if !wasKept {
		return
	}
	kept := make(provision.Amounts)
	if is, isKept := after.(*room.Provision); isKept {
		kept = is.Held()
	}
	still := was.Held().AtMost(rest)
	switch {
	case !still.Within(kept):
		e.keeper.tell(ctx, was, ReasonReservationLost,
			fmt.Sprintf("of the room that was kept for members to come, %s has gone to others; kept is room for %s", still.Less(kept), kept))
		if after == nil {
			e.metrics.Provisions.WithLabelValues("lost").Inc()
		}
	case after == nil:
		e.metrics.Provisions.WithLabelValues(string(gangs.KeptFilled)).Inc()
	}
}

// heard tells the gangs of an event that may help one, and has room be sought anew for members to come
// where somebody may have taken it, or the node may have gone.
func (e *engine) heard() func(event fwk.ClusterEvent, before, after any) {
	tell := heard(e.gangs)
	return func(event fwk.ClusterEvent, before, after any) {
		tell(event, before, after)
		switch {
		case event.Resource == fwk.AssignedPod && event.ActionType == fwk.Add:
			if pod, ok := after.(*corev1.Pod); ok {
				e.seekAnew(pod.Spec.NodeName, func(claim *room.Provision) bool {
					key, named := e.gangs.KeyOf(pod)
					return named && key != claim.Gang().Rank.Key || !named && !claim.IsKeptFromPod(pod)
				})
			}
		case event.Resource == fwk.Node:
			for _, object := range []any{before, after} {
				if node, ok := object.(*corev1.Node); ok && node != nil {
					e.seekAnew(node.Name, func(*room.Provision) bool { return true })
					break
				}
			}
		}
	}
}

// seekAnew has room be sought anew for gangs for whose members to come room of a node is kept.
func (e *engine) seekAnew(node string, concerns func(*room.Provision) bool) {
	for _, claim := range e.room.ProvisionsOn(node) {
		if concerns(claim) {
			e.gangs.SeekRoom(claim.Gang().Rank.Key)
		}
	}
}

// pruneProvision ends room for members to come of a gang that has no use for it any more.
func (k *keeper) pruneProvision(ctx context.Context, claim *room.Provision) {
	gang := claim.Gang()
	if kept := k.gangs.Provides(gang.Rank.Key, gang.UID); kept != gangs.KeptOn && k.end(ctx, claim) {
		k.metrics.Provisions.WithLabelValues(string(kept)).Inc()
		if kept == gangs.KeptExpired {
			k.tellExpired(ctx, claim)
		}
	}
}

// expireProvision ends room for members to come that was kept for too long.
func (k *keeper) expireProvision(ctx context.Context, claim *room.Provision) {
	if !k.end(ctx, claim) {
		return
	}
	k.gangs.EndProvision(claim.Gang().Rank.Key, claim.Gang().UID)
	k.metrics.Provisions.WithLabelValues(string(gangs.KeptExpired)).Inc()
	k.tellExpired(ctx, claim)
}

func (k *keeper) tellExpired(ctx context.Context, claim *room.Provision) {
	k.tell(ctx, claim, ReasonReservationExpired, fmt.Sprintf("room for %s was kept for members to come, and is not any more: they did not come in time", claim.Held()))
}

// tell records an event on the group for which room was kept.
func (k *keeper) tell(ctx context.Context, claim *room.Provision, reason, message string) {
	gang := claim.Gang()
	k.tells(ctx, &dialect.Group{Key: gang.Rank.Key, UID: gang.UID}, reason, message)
}

// held is how much room is kept for members to come, by resource: of CPU in cores.
func held(of *room.Room) map[string]float64 {
	sum := make(map[string]float64)
	for _, claim := range of.InOrder() {
		if kept, ok := claim.(*room.Provision); ok {
			for name, amount := range kept.Held() {
				if name == corev1.ResourceCPU {
					sum[string(name)] += float64(amount) / 1000
				} else {
					sum[string(name)] += float64(amount)
				}
			}
		}
	}
	return sum
}
