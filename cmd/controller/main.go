// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lockstep-controller runs Frameworks: it creates the Pods of each attempt, and decides on completion and
// retry. If the configuration enables it, the program also runs Volcano Jobs and training jobs of Kubeflow. It creates
// the PodGroups of these jobs, and writes the phase and the counters of every PodGroup.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
)

func main() {
	if err := cli.RunNoErrOutput(newCommand()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		os.Exit(1)
	}
}
