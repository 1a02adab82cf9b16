// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// The reasons of the events that tell a group what has become of room for its members to come.
const (
	// ReasonReservationExpired: room is not kept any more, as no member came for too long.
	ReasonReservationExpired = "ReservationExpired"
	// ReasonReservationLost: the room that was kept went to work that is ahead.
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
	out := e.seekRest(ctx, &view, own)
	e.keeper.become(ctx, view.Key, own, out.Claim)
	e.sought(ctx, &view, own, out)
}

// seekRest seeks room for members to come of a gang, in a turn that finds no place for any that wait. If it
// fails the gang keeps what it has.
func (e *engine) seekRest(ctx context.Context, view *gangView, own room.Claim) place.Outcome {
	cluster, err := e.cluster(ctx, view, own, e.plugins[view.Provision.Model.Spec.SchedulerName], false)
	if err != nil {
		return place.Outcome{Claim: own, RestErr: err}
	}
	return place.Provide(ctx, view.Gang, cluster)
}

// unsoughtAgain is in what time room is sought again for members to come of a gang of which others wait, if nothing
// happens before: it was not found out how much there is.
const unsoughtAgain = 30 * time.Second

// seekBeside has room be sought for members to come in a turn that has ended before that, with no place for those
// that wait. It may be that nothing is kept yet: this scheduler has just started.
func (e *engine) seekBeside(ctx context.Context, view *gangView, own room.Claim, out *place.Outcome) {
	if !view.SeeksRoom || out.SoughtRest || len(out.Placements) > 0 {
		return
	}
	if _, provides := out.Claim.(*room.Provision); !out.Shortfall.Overdue && (out.Claim == nil || provides) {
		rest := e.seekRest(ctx, view, own)
		out.Claim, out.Rest, out.SoughtRest, out.RestErr = rest.Claim, rest.Rest, rest.SoughtRest, rest.RestErr
	}
	if !out.SoughtRest {
		out.Again = times.Sooner(out.Again, time.Now().Add(unsoughtAgain))
	}
}

// sought notes for how much room was sought for members to come of a gang, and tells it if what was
// kept for them before is gone to others.
func (e *engine) sought(ctx context.Context, view *gangView, before room.Claim, out place.Outcome) {
	if out.RestErr != nil {
		klog.FromContext(ctx).Error(out.RestErr, "Seeking room for members of a pod group that are to come failed")
	}
	if !out.SoughtRest {
		return
	}
	after, rest := out.Claim, out.Rest
	held := make(provision.Amounts)
	is, isKept := after.(*room.Provision)
	if isKept {
		held = is.Held()
	}
	e.gangs.Sought(view.Key, view.Group.UID, gangs.Sought{Rest: rest, Held: held, Kept: isKept})
	if isKept && after != before {
		klog.FromContext(ctx).V(2).Info("Keeping room for members of a pod group that are to come", "room", is.Held().String(), "of", rest.String(), "until", is.End())
	}
	was, wasKept := before.(*room.Provision)
	if !wasKept {
		return
	}
	still := was.Held().AtMost(rest)
	switch {
	case !still.Within(held):
		e.keeper.tell(ctx, was, ReasonReservationLost,
			fmt.Sprintf("of the room that was kept for members to come, %s has gone to others; kept is room for %s", still.Less(held), held))
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
		case event.Resource == fwk.Node && event.ActionType == fwk.Delete:
			// The shares of all namespaces are smaller without it.
			for _, claim := range e.room.Provisions() {
				e.gangs.SeekRoom(claim.Gang().Rank.Key)
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
