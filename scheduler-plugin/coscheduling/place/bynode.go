// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// byNode keeps an answer about each node until the node changes. The zero value knows none.
type byNode[T any] struct {
	nodes   []fwk.NodeInfo
	answers []answer[T]
}

// answer is what was answered about a node, with the node's generation at that time.
type answer[T any] struct {
	generation int64
	is         T
}

// of returns the answer about each node. It asks about a node if the node has changed since the last call, or if the
// earlier answer is outdated.
func (b *byNode[T]) of(nodes []fwk.NodeInfo, isOutdated func(T) bool, ask func(fwk.NodeInfo) T) []answer[T] {
	if !slices.Equal(b.nodes, nodes) {
		before := make(map[fwk.NodeInfo]answer[T], len(b.nodes))
		for n, info := range b.nodes {
			before[info] = b.answers[n]
		}
		b.nodes, b.answers = slices.Clone(nodes), make([]answer[T], len(nodes))
		for n, info := range nodes {
			b.answers[n] = before[info]
		}
	}
	for n, info := range nodes {
		if known := &b.answers[n]; known.generation != info.GetGeneration() || isOutdated(known.is) {
			*known = answer[T]{generation: info.GetGeneration(), is: ask(info)}
		}
	}
	return b.answers
}
