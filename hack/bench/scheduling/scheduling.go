// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduling measures how fast Pods and gangs are placed, against
// kube-scheduler built from the same modules.
//
// # Method
//
// The control plane is a real API server with etcd. Nodes are objects that nobody
// plays: all that happens while a scheduler is measured is scheduling. Pods,
// PodGroups and nodes exist before the scheduler's process is started; what is
// measured is the time from there to the last binding, as a client sees that
// watches. Then the process is killed, the Pods are deleted, and it is the next
// one's turn, with the same flags and no limit to its request rate that it could
// notice.
package scheduling

import (
	"context"
	"time"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
)

// Nodes of the two clusters that are measured on.
const manyNodes, fewNodes = 5000, 1000

// longLimit is for cases of a hundred thousand Pods.
const longLimit = 30 * time.Minute

// Cases are the measurements of the scheduler.
func Cases() []harness.Case {
	on := func(nodes int, measure func(context.Context, *stage) error) func(context.Context, *harness.Bench) error {
		return func(ctx context.Context, b *harness.Bench) error { return onStage(ctx, b, nodes, measure) }
	}
	return []harness.Case{
		{Name: "scheduling/gang-of-1000", Title: "one gang of 1000 on 5000 nodes", Run: on(manyNodes, gangOf1000)},
		{Name: "scheduling/alone", Title: "scheduling alone, bindings stubbed, on 5000 nodes", Run: on(manyNodes, alone)},
		{Name: "scheduling/500-gangs", Title: "500 gangs of 8 on 1000 nodes", Run: on(fewNodes, manyGangs)},
		{Name: "scheduling/podgroup-apis", Title: "500 gangs of 8 on 1000 nodes, in PodGroups of other projects", Run: on(fewNodes, inPodGroupAPIs(500, 8))},
		{Name: "scheduling/contention", Title: "20 gangs of 100 where 10 have room", Run: on(fewNodes, contention)},
		{Name: "scheduling/rack", Title: "a gang of 256 on 5000 nodes in 50 racks", Run: on(manyNodes, rack)},
		{Name: "scheduling/preemption", Title: "a gang of 500 over 500 victims on 1000 nodes", Run: on(fewNodes, preemption)},
		{Name: "scheduling/ordinary", Title: "1000 ordinary Pods on 5000 nodes", Run: on(manyNodes, ordinary)},
		{Name: "scheduling/seen-1000", Title: "a gang of 1000 on 5000 nodes, since all of it is seen", Run: on(manyNodes, sinceSeen(1, 1000))},
		{Name: "scheduling/seen-500-gangs", Title: "500 gangs of 8 on 1000 nodes, since all are seen", Run: on(fewNodes, sinceSeen(500, 8))},
		{Name: "scheduling/10000-pods", Title: "20 gangs of 500 on 5000 nodes, since all are seen", Run: on(manyNodes, tenThousand)},
		{Name: "scheduling/100-gangs-of-1000", Title: "100 gangs of 1000 on 20,000 nodes, bindings stubbed", Limit: longLimit,
			Run: hugeCluster(100, 1000, 0.05, 15)},
		{Name: "scheduling/12500-gangs-of-8", Title: "12,500 gangs of 8 on 20,000 nodes, bindings stubbed", Limit: longLimit,
			Run: hugeCluster(12_500, 8, 0.1, 30)},
		{Name: "scheduling/130000-nodes", Title: "131,072 Pods in gangs of 8 to 8192 on 130,000 nodes, bindings stubbed", Limit: longLimit, Run: hugest},
		{Name: "scheduling/start", Title: "start with 100,000 Pods that run on 20,000 nodes, bindings stubbed", Run: start},
		{Name: "scheduling/told", Title: "1000 that are to be in a rack of 100, on 20,000 nodes, bindings stubbed",
			Run: oneDecision("to be told why", unsatisfiable(), true)},
		{Name: "scheduling/preferred", Title: "512 with preferred topology on 512 nodes, bindings stubbed",
			Run: oneDecision("scheduling alone", preferred(), false)},
		{Name: "scheduling/why", Title: "to be told why a gang of 1000 waits, on 5000 nodes with 10,000 Pods", Run: on(manyNodes, askWhy)},
	}
}
