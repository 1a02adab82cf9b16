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

// labelBlind are the Filter plugins that do not look at the Pod's labels. Of other Pods on a node, these plugins look
// only at the resources and ports in use.
var labelBlind = sets.New(kube.NodeResourcesFit, kube.NodeAffinity, kube.TaintToleration,
	kube.NodeUnschedulable, kube.NodeName, kube.NodePorts)

// Shape returns a key that is equal for gangs that either all find a place or all find none, if they have to respect the same
// reservations and the same maintenance. The key is "" for a gang that can't be compared with others: some members are placed, or
// members have claims of their own.
func (g *Gang) Shape() string {
	if g.Placed.Total > 0 || len(g.Waiting) == 0 || slices.ContainsFunc(g.Waiting, ownsClaims) {
		return ""
	}
	spec := &g.Group.Spec
	h := sha256.New()
	fmt.Fprintf(h, "%d %t %d %v %v", g.Rank.Priority, g.MayPreempt, spec.Minimum.Members, spec.Minimum.Roles, spec.Topology)
	if g.announces() {
		// How much may be reserved depends on the namespace.
		fmt.Fprintf(h, " %s %s %s %d", g.Key.Namespace, g.ToCome, g.timeout(), g.stillToCome(0))
	}
	// Members are placed in this order.
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

// speaksForOthers reports whether what keeps a gang out also keeps out other gangs of its shape. If the gang may
// reserve room, this also requires that no gang of the shape can reserve any.
func speaksForOthers(gang *Gang, found *survey, out *Outcome) bool {
	if why := out.Shortfall; !why.Certain || why.Overdue || out.Reservation != nil || gang.First && out.Helpless == 0 {
		return false
	}
	return isBlind(found.classes)
}

// isBlind reports whether the plugins' answers depended neither on labels nor on the namespace. Gangs of one shape may
// differ in these.
func isBlind(classes []*class) bool {
	return onlyNodesDecide(classes) && !slices.ContainsFunc(classes, func(class *class) bool { return class.regard.averse })
}

// onlyNodesDecide reports whether each node that rejects a class would do so whatever labels the members had, and will
// do so until the node itself changes.
func onlyNodesDecide(classes []*class) bool {
	return !slices.ContainsFunc(classes, func(class *class) bool { return !class.labelBlind || !class.regard.isMonotone() })
}
