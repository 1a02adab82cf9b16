// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Between the place of a member and its binding, plugins may wait: for a volume that is being provisioned, say. Then its
// siblings may run already.

// How long a member may wait to be bound before that is reported: one that needs volumes or devices, and any other. Of
// many that are placed at once, the last ones are bound late.
const (
	claimPatience   = 5 * time.Second
	bindingPatience = time.Minute
)

// BindingPatience returns how long a member may wait to be bound before that is reported.
func BindingPatience(pod *corev1.Pod) time.Duration {
	if len(needs(pod)) > 0 {
		return claimPatience
	}
	return bindingPatience
}

// needs are the claims of a Pod, by kind and name.
func needs(pod *corev1.Pod) []string {
	var needs []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			needs = append(needs, "PersistentVolumeClaim "+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			needs = append(needs, "PersistentVolumeClaim "+pod.Name+"-"+v.Name)
		}
	}
	for _, claim := range pod.Spec.ResourceClaims {
		needs = append(needs, "resource claim "+claim.Name)
	}
	return needs
}

// ReasonSlowBinding: the Pod has a place, and is not bound to its node yet.
const ReasonSlowBinding = "WaitingForBinding"

// slowBinding reports for what the gang waits that has a place for its minimum, empty if nothing takes long.
func (g *Gang) slowBinding() string {
	if len(g.Slow) == 0 {
		return ""
	}
	first := g.Slow[0]
	message := fmt.Sprintf("%d of at least %d members are bound; %s", g.Bound.Total, g.Group.Spec.Minimum.Members, first.message())
	if others := len(g.Slow) - 1; others > 0 {
		message += fmt.Sprintf("; %d more are not bound either", others)
	}
	return message
}

// message says since when a member waits and for what it may.
func (m *SlowMember) message() string {
	message := fmt.Sprintf("%s has a place on %s since %s and is not bound to it yet", m.Pod.Name, m.Node, m.Since.UTC().Format(time.RFC3339))
	if needs := needs(m.Pod); len(needs) > 0 {
		message += "; it needs " + strings.Join(needs[:min(len(needs), maxNeedsTold)], ", ")
	}
	return message
}

// maxNeedsTold is how many claims a message names.
const maxNeedsTold = 3

// maxSlowTold is how many Pods of a gang have an event that they are not bound yet, in all its life: of a thousand that
// are bound one after the other, each is among the first that are not for a while.
const maxSlowTold = 10

// SlowEvents returns the members that get an event now because they are not bound yet, and the event of each. Told are all
// members that have such an event afterwards.
func (g *Gang) SlowEvents() (pods []*corev1.Pod, events []Event, told map[types.UID]bool) {
	told = make(map[types.UID]bool)
	maps.Copy(told, g.Record.ToldSlow)
	for _, m := range g.Slow {
		if told[m.Pod.UID] || len(told) == maxSlowTold {
			continue
		}
		told[m.Pod.UID] = true
		pods = append(pods, m.Pod)
		events = append(events, Event{Kind: corev1.EventTypeWarning, Reason: ReasonSlowBinding, Message: m.message()})
	}
	return pods, events, told
}

// SortSlow orders members by name.
func SortSlow(members []SlowMember) {
	slices.SortFunc(members, func(a, b SlowMember) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
}
