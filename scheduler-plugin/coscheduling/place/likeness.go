// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// labelBlind are the Filter plugins whose verdict does not depend on the labels
// of the Pod, nor on which Pods are on the nodes but for what they take.
var labelBlind = sets.New(kube.NodeResourcesFit, kube.NodeAffinity, kube.TaintToleration,
	kube.NodeUnschedulable, kube.NodeName, kube.NodePorts)

// Shape is equal for gangs that find a place or don't together, empty for a gang that is
// like no other: with members placed, or with claims of their own.
func (g *Gang) Shape() string {
	if g.Placed.Total > 0 || len(g.Waiting) == 0 || slices.ContainsFunc(g.Waiting, ownsClaims) {
		return ""
	}
	spec := &g.Group.Spec
	h := sha256.New()
	fmt.Fprintf(h, "%d %t %d %v %v", g.Rank.Priority, g.MayPreempt, spec.Minimum.Members, spec.Minimum.Roles, spec.Topology)
	if g.announces() {
		// What may be reserved depends on the namespace.
		fmt.Fprintf(h, " %s %s %s %d", g.Key.Namespace, g.ToCome, g.timeout(), g.stillToCome(0))
	}
	// The order of members is that in which they are placed.
	for i, n := 0, 0; i < len(g.ClassKeys); i += n {
		n = 1
		for i+n < len(g.ClassKeys) && g.ClassKeys[i+n] == g.ClassKeys[i] {
			n++
		}
		fmt.Fprintf(h, "\n%d ", n)
		_, _ = io.WriteString(h, g.ClassKeys[i]) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// speaksForOthers says whether what keeps a gang out would keep out others like it. If it
// has the right to be helped, nor can they be helped if it can't.
func speaksForOthers(gang *Gang, found *survey, out *Outcome) bool {
	if why := out.Shortfall; !why.Certain || why.Overdue || out.Reservation != nil || gang.First && out.Helpless == 0 {
		return false
	}
	return isBlind(found.classes)
}

// isBlind says whether nothing counted in which gangs of a shape may differ: labels, and the
// namespace.
func isBlind(classes []*class) bool {
	return onlyNodesDecide(classes) && !slices.ContainsFunc(classes, func(class *class) bool { return class.regard.averse })
}

// onlyNodesDecide says whether each node that rejects a class does so whatever labels its
// members have, and until the node itself changes.
func onlyNodesDecide(classes []*class) bool {
	return !slices.ContainsFunc(classes, func(class *class) bool { return !class.labelBlind || !class.monotone })
}
