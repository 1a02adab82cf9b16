// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lockstep-dashboard serves the web page of a cluster's jobs. Each visitor sees what he may read himself; no
// visitor can change anything.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
)

func main() {
	if err := cli.RunNoErrOutput(newCommand()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", programName, err)
		os.Exit(1)
	}
}
