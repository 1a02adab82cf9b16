// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	clientinformers "k8s.io/client-go/informers"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/narrow"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/served"
)

// narrowed are the APIs of a cluster, for some namespaces.
type narrowed struct {
	*served.APIs
	namespaces informing.Namespaces
}

// FillIn implements program.Cluster.
func (n narrowed) FillIn(factory clientinformers.SharedInformerFactory) {
	narrow.Informers(factory, n.namespaces)
	n.APIs.FillIn(factory)
}
