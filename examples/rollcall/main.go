// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rollcall is a process of a distributed job that does nothing but find all the
// others, by what its manifest, the plugins of a Volcano Job, or an MPIJob tell it. It ends when each
// has called all others, with exit code 0, or says who is missing.
//
//	rollcall tensorflow   by TF_CONFIG: each calls the addresses of all others
//	rollcall torchrun     by the variables of torchrun: all meet at PET_MASTER_ADDR, or
//	                      at PET_RDZV_ENDPOINT, and hear there where the others are
//	rollcall pytorch      by MASTER_ADDR and RANK: all call the first
//	rollcall ray          by RAY_ADDRESS, where the head of as many as RAY_NODES is: a node
//	                      joins it, is told of the others, and then serves until it is ended
//	rollcall ray-head     is the head, and ends as a driver there does
//	rollcall mpi          by MPI_HOST: logs in to all hosts with the keys of plugin ssh, and has them
//	                      call each other; else by the file of hosts of OpenMPI
//	rollcall sshd         lets those log in that have the keys, until it is ended
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
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

// listenFunc listens on a port, "0" for any.
type listenFunc func(port string) (net.Listener, error)

func run(ctx context.Context, args []string, getenv func(string) string) error {
	if len(args) != 1 {
		return errors.New("want one argument: tensorflow, torchrun, pytorch, ray, ray-head, mpi or sshd")
	}
	switch args[0] {
	case "tensorflow":
		return tensorflow(ctx, getenv("TF_CONFIG"), listen)
	case "torchrun":
		return torchrun(ctx, getenv, listen)
	case "pytorch":
		return pytorch(ctx, getenv, listen)
	case "ray":
		if err := ray(ctx, getenv, false, listen); err != nil {
			return err
		}
		// It goes on until it is ended, as ray start --block does.
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		return nil
	case "ray-head":
		return ray(ctx, getenv, true, listen)
	case "mpi":
		if file := getenv("OMPI_MCA_orte_default_hostfile"); file != "" {
			return mpiByFile(ctx, file, sshFolder, listen)
		}
		return mpi(ctx, getenv("MPI_HOST"), sshFolder, listen)
	case "sshd":
		return serveSSH(context.Background(), sshFolder, listen)
	}
	return fmt.Errorf("want tensorflow, torchrun, pytorch, ray, ray-head, mpi or sshd, not %q", args[0])
}
