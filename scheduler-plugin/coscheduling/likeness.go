// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

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

// shape is equal for gangs that find a place or don't together, empty for a gang that is
// like no other: with members placed, or with claims of their own.
func (v *gangView) shape() string {
	if v.placed.Total > 0 || len(v.waiting) == 0 || slices.ContainsFunc(v.waiting, ownsClaims) {
		return ""
	}
	spec := &v.group.Spec
	h := sha256.New()
	fmt.Fprintf(h, "%d %t %d %v %v", v.rank.Priority, v.mayPreempt, spec.MinMember, spec.MinRoleMember, spec.Topology)
	// The order of members is that in which they are placed.
	for i, n := 0, 0; i < len(v.classKeys); i += n {
		n = 1
		for i+n < len(v.classKeys) && v.classKeys[i+n] == v.classKeys[i] {
			n++
		}
		fmt.Fprintf(h, "\n%d ", n)
		_, _ = io.WriteString(h, v.classKeys[i]) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// looksForItself says whether the gang has to be planned whatever others have found: it
// starves, or has room held for it.
func (c *cycle) looksForItself() bool {
	return c.view.starving || c.room.Of(c.view.key) != nil
}

// speaksForOthers says whether what keeps the gang out would keep out others like it. If it
// starves, nor can they be helped if it can't.
func (c *cycle) speaksForOthers(why *shortfall) bool {
	if !why.certain || c.unlike || c.room.Of(c.view.key) != nil || c.view.starving && why.helpless == 0 {
		return false
	}
	return isBlind(c.classes)
}

// isBlind says whether nothing counted in which gangs of a shape may differ: labels, and the
// namespace.
func isBlind(classes []*class) bool {
	repels := func(class *class) bool { return len(class.info.RequiredAntiAffinityTerms) > 0 }
	return onlyNodesDecide(classes) && !slices.ContainsFunc(classes, repels)
}

// onlyNodesDecide says whether each node that rejects a class does so whatever labels its
// members have, and until the node itself changes.
func onlyNodesDecide(classes []*class) bool {
	return !slices.ContainsFunc(classes, func(class *class) bool { return !class.labelBlind || !class.monotone })
}
