// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lockstep-local runs a real Kubernetes on one machine, with Lockstep in it.
package main

import (
	"os"

	"github.com/lockstep-k8s/lockstep/localcluster/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}
