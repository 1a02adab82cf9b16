// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import fwk "k8s.io/kube-scheduler/framework"

// mayTake says whether an ordinary Pod may go to a node with its request, if it has to leave
// some claims alone. A node where nothing is reserved is none of its business.
func mayTake(request fwk.Resource, node fwk.NodeInfo, leaves []Claim) bool {
	var reserved Usage
	for _, claim := range leaves {
		reserved.add(claim.Reserved(node))
	}
	return reserved.IsZero() || reserved.LeavesRoom(request, node)
}
