// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube/program"
)

const (
	// programName is also the schedulerName that is served without --config.
	programName = "lockstep-scheduler"

	// defaultQPS and defaultBurst let a gang of a thousand be bound in about a second. kube-scheduler's 50 and 100
	// would make it wait for its own client most of that time.
	defaultQPS   = 1000
	defaultBurst = 2000

	// leaseNamespace and programName name the lease of the leader if there is no --config. kube-scheduler's default, a
	// lease in kube-system, is the one that the cluster's own scheduler holds.
	leaseNamespace = "lockstep-system"
)

// defaults are what is not as in kube-scheduler.
var defaults = program.Defaults{
	Name:           programName,
	LeaseNamespace: leaseNamespace,
	QPS:            defaultQPS,
	Burst:          defaultBurst,
	Plugin:         coscheduling.Name,
	New:            coscheduling.New,
	CheckArgs:      coscheduling.CheckArgs,
}
