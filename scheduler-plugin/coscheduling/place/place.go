// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// Place seeks a place for a gang. If there is none, Place decides how the gang can get a place later: by preemption, or
// by a reservation. On an error it leaves no volume or device set aside, and the Outcome is empty.
func Place(ctx context.Context, gang Gang, cluster Cluster) (Outcome, error) {
	said := make(rejections)
	admitted, why := admit(ctx, &gang, &cluster, said)
	if why != nil {
		return Unsought(&gang, cluster.Own, *why), nil
	}
	lasting, err := lasting(&cluster)
	if err != nil {
		return Outcome{}, err
	}
	unsteady := sets.KeySet(cluster.Nominated)
	cluster.Nominated = notOutranked(&gang, cluster.Nominated)
	cluster.ahead, err = respect(&cluster, admitted)
	defer cluster.ahead.leave(ctx)
	if err != nil {
		return Outcome{}, err
	}
	unsteady = unsteady.Union(cluster.ahead.nodes())
	starting := admitted.starting()
	if excess := starting.exceeds(&cluster); excess != "" {
		return Unsought(&gang, cluster.Own, Shortfall{Message: excess}), nil
	}
	first := newAttempt(starting, &cluster, said)
	first.shares = !cluster.ownToCome() && !slices.ContainsFunc(admitted.Waiting, ownsClaims)
	first.unsteady, first.complete, first.lasting = unsteady, true, lasting
	placed, why, err := first.plan(ctx)
	switch {
	case errors.Is(err, errOverdue):
		why = &Shortfall{Message: tooConstrained(len(first.found.classes), &cluster)}
		why.giveUp()
		return Unsought(&gang, cluster.Own, *why), nil
	case errors.Is(err, errManyResources):
		return Unsought(&gang, cluster.Own, Shortfall{Message: err.Error()}), nil
	case err != nil:
		return Outcome{}, err
	case why == nil:
		return settle(ctx, &gang, &cluster, placed), nil
	case why.Unfinished:
		out := refused(&gang, cluster.Own, *why)
		out.Again = cluster.Now()
		return out, nil
	case why.Needed == 0:
		return Unsought(&gang, cluster.Own, *why), nil
	}
	if n := len(starting.virtual); n > 0 {
		why.Message += fmt.Sprintf("; %d of the members are still to come, for %s that the group announces", n, starting.rest().WithoutPods())
	}

	s := &seeker{gang: first.gang, cluster: &cluster, found: first.found, until: cluster.searchDeadline(),
		wantsDevices: slices.ContainsFunc(first.found.classes, func(c *class) bool { return len(c.devices) > 0 || len(c.info.Pod.Spec.ResourceClaims) > 0 })}
	out := refused(&gang, cluster.Own, *why)
	if err := s.seek(ctx, &out); errors.Is(err, errOverdue) {
		why.giveUp()
		out = Unsought(&gang, cluster.Own, *why)
	} else if err != nil {
		return Outcome{}, err
	}
	out.Shortfall.Message += cluster.ahead.message(gang.Key.Namespace) + leftTo(cluster.Nominated)
	// When a nominated Pod is placed elsewhere, the only event is that a Pod was placed.
	out.Shortfall.Need.RegardsOthers = out.Shortfall.Need.RegardsOthers || len(cluster.Nominated) > 0
	if r := out.Reservation; r != nil && r.Reason == room.Preemption {
		s.mightPreempt = false // what the gang preempts is decided
	} else {
		out.Again = times.Sooner(out.Again, s.again)
	}
	out.Shortfall.Need = needOf(first.found, out.Shortfall, s)
	// A gang that was planned without some of its members does not speak for others.
	isAll := len(admitted.Waiting) == len(gang.Waiting)
	out.Shortfall.OfOthers = isAll && !s.unlike && speaksForOthers(&gang, first.found, &out)
	return out, nil
}

// settle returns the outcome for a gang whose members have their places in the snapshot. The outcome includes the
// reservation for members that are still to come. settle restores the snapshot.
func settle(ctx context.Context, gang *Gang, cluster *Cluster, placed *verification) Outcome {
	toCome := gang.reserveToCome(cluster, placed)
	placed.leaveSnapshot(ctx)
	placed.dropVirtual()
	out := placedOutcome(gang, placed)
	out.Reservation = toCome
	return out
}

// admit returns the gang without the members that a PreEnqueue plugin rejects. It has to ask the plugins because
// members never enter kube-scheduler's queue, which would ask them. If too few members are left, it returns a
// shortfall.
func admit(ctx context.Context, gang *Gang, cluster *Cluster, said rejections) (*Gang, *Shortfall) {
	admitted := *gang
	admitted.Waiting, admitted.ClassKeys = nil, nil
	all := gang.Placed.Plus(podgroup.Tally{})
	for i, pod := range gang.Waiting {
		if status := keptBack(ctx, pod, cluster); !status.IsSuccess() {
			said.add(status)
			continue
		}
		admitted.Waiting, admitted.ClassKeys = append(admitted.Waiting, pod), append(admitted.ClassKeys, gang.ClassKeys[i])
		all.Add(gang.Key.RoleOf(pod), 1)
	}
	if len(admitted.Waiting) == 0 || !gang.Group.HeldBy(all) {
		return nil, &Shortfall{Unready: true, Message: fmt.Sprintf("%d of %d members may not be scheduled yet: %s",
			len(gang.Waiting)-len(admitted.Waiting), len(gang.Waiting), topReasons(said))}
	}
	return &admitted, nil
}

// keptBack returns what the other PreEnqueue plugins say of a member.
func keptBack(ctx context.Context, pod *corev1.Pod, cluster *Cluster) *fwk.Status {
	for _, plugin := range cluster.Profiles[pod.Spec.SchedulerName].PreEnqueuePlugins() {
		if plugin.Name() == cluster.Plugin {
			continue
		}
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return status.WithPlugin(plugin.Name())
		}
	}
	return nil
}
