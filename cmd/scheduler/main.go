// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lockstep-scheduler is kube-scheduler with one more plugin, Coscheduling, which places all members of a
// PodGroup in one step or none of them.
//
// The program takes kube-scheduler's flags. Without --config it serves the schedulerName lockstep-scheduler with all
// default plugins and Coscheduling. With --config it takes any KubeSchedulerConfiguration with a profile that enables
// Coscheduling.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
)

// gcPercent is Go's GOGC for this program, unless the environment sets GOGC: how much the heap may grow between two
// collections, in per cent of the live heap. Most of the heap is caches of the cluster, which each collection walks.
// At Go's default of 100 that took a quarter of the processor time of placing 500 gangs.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	legacyregistry.RawMustRegister(buildinfo.Collector("lockstep-scheduler"))
	cmd, err := newCommand()
	if err == nil {
		err = cli.RunNoErrOutput(cmd)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
