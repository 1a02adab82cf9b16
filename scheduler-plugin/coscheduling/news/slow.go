// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// slowWarnings returns a warning for members that are not bound yet.
func (g *Gang) slowWarnings() (warnings []Warning) {
	left := maxSlowTold
	for w := range g.Record.warned {
		if w.reason == ReasonSlowBinding {
			left--
		}
	}
	for i := range g.Slow {
		w := Warning{Pod: g.Slow[i].Pod, Reason: ReasonSlowBinding, Message: g.Slow[i].message()}
		if left > 0 && !g.Record.warned[w.warned()] {
			left--
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// SortSlow orders members by name.
func SortSlow(members []SlowMember) {
	slices.SortFunc(members, func(a, b SlowMember) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
}
