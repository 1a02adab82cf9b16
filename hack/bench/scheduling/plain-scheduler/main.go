// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plain-scheduler is kube-scheduler as it is, built from the same modules
// and in the same way as lockstep-scheduler, to measure that one against.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand()))
}
