// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rollcall is a process of a distributed job that does nothing but find all the
// others, by what the plugins of a Volcano Job tell it, or an MPIJob. It ends when all have been found,
// with exit code 0, or says who is missing.
//
//	rollcall tensorflow   by TF_CONFIG: workers call all parameter servers
//	rollcall pytorch      by MASTER_ADDR and RANK: all call the first
//	rollcall mpi          by MPI_HOST: logs in to all hosts with the keys of plugin ssh; in an
//	                      MPIJob, by the file of hosts of OpenMPI
//	rollcall sshd         lets those log in that have the keys, until it is ended
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"
)

// patience is how long a process looks for the others: their Pods may be started later than
// its own, and names are known only after that.
const patience = 3 * time.Minute

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("gave up after %v", patience))
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Getenv); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	if len(args) != 1 {
		return errors.New("want one argument: tensorflow, pytorch, mpi or sshd")
	}
	switch args[0] {
	case "tensorflow":
		return tensorflow(ctx, getenv("TF_CONFIG"), listen)
	case "pytorch":
		return pytorch(ctx, getenv, listen)
	case "mpi":
		if file := getenv("OMPI_MCA_orte_default_hostfile"); file != "" {
			return mpiByFile(ctx, file, sshFolder)
		}
		return mpi(ctx, getenv("MPI_HOST"), sshFolder)
	case "sshd":
		return serveSSH(context.Background(), sshFolder, listen)
	}
	return fmt.Errorf("want tensorflow, pytorch, mpi or sshd, not %q", args[0])
}
