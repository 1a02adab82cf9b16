// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import "github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"

// Rights are what somebody who asks may read.
type Rights struct {
	// Nodes says that he may list nodes.
	Nodes bool
	// Pods says of which namespaces he may list Pods.
	Pods func(namespace string) bool
}

// Redact takes out of an answer what its reader may not read: Pods of others become a count, and so
// do the names of nodes. What resource is missing, and on how many nodes, stays. What nodes are like is kept
// out of sentences before they are made: see Snapshot.HidesNodes.
func Redact(answer *answers.Simulation, may Rights) {
	var shown []answers.Victim
	for _, victim := range answer.Victims {
		if !may.Pods(victim.Namespace) {
			answer.HiddenVictims++
			continue
		}
		if !may.Nodes {
			victim.Node = ""
		}
		shown = append(shown, victim)
	}
	answer.Victims = shown
	if may.Nodes {
		return
	}
	answer.MorePlacements += len(answer.Placements)
	answer.Placements = nil
}
