// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testbed gives end-to-end tests a cluster of localenv: in the terms of
// package testing, with ways to wait for what a user would wait for.
package testbed

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// kubernetesVersion lets any of the tests be run on an older API server.
var kubernetesVersion = flag.String("kubernetes-version", "", "minor version of the API server, such as 1.36 (default the newest that lockstep-local has)")

// KubernetesVersion is the minor version of the API server that the flag of that name
// asks for; empty means the newest that lockstep-local has.
func KubernetesVersion() string { return *kubernetesVersion }

// Cluster is the cluster that the tests of a package share.
type Cluster struct {
	*localenv.Cluster
	// controller is what RunController has started. Nil without it.
	controller *localenv.Controller
	// scheduler is what RunScheduler has started. Nil without it.
	scheduler *runningScheduler
	leaving   leavingNamespaces
}

// Main runs the tests of a package on a cluster of their own, of the version that
// KubernetesVersion returns, and returns the code to exit with. Main calls use with the cluster
// before any test runs. It stops the clusters beside that one that tests have asked for.
func Main(m *testing.M, o localenv.Options, use func(ctx context.Context, c *Cluster) error, beside ...*Beside) int {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.KubernetesVersion = KubernetesVersion()
	cluster, down, err := up(ctx, o)
	if err != nil {
		return failed(err)
	}
	for _, b := range beside {
		b.ctx = ctx
	}
	code := 0
	if err := use(ctx, cluster); err != nil {
		code = failed(err)
	} else {
		code = m.Run()
		if err := cluster.waitNamespacesGone(ctx); err != nil {
			code = failed(err)
		}
		for _, b := range beside {
			if err := b.stop(); err != nil {
				code = failed(err)
			}
		}
	}
	if err := down(); err != nil {
		code = failed(err)
	}
	// The program exits now: no context ends what still runs.
	localenv.KillProcesses()
	return code
}

// Up starts a cluster for one test, which stops it when it ends.
func Up(t testing.TB, o localenv.Options) *Cluster {
	t.Helper()
	// Not the context of the test, which ends before its cleanups.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(t.Context()), os.Interrupt, syscall.SIGTERM)
	cluster, down, err := up(ctx, o)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer stop()
		if err := cluster.waitNamespacesGone(ctx); err != nil {
			t.Error(err)
		}
		if err := down(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// upClusters counts the clusters that run, so that the program does not exit while one of them is being stopped.
var upClusters sync.WaitGroup

// up starts a cluster that does not outlive the tests, however they end: down stops it, and
// so does the end of ctx by Ctrl-C, which ends the program, too.
func up(ctx context.Context, o localenv.Options) (cluster *Cluster, down func() error, err error) {
	o.Output = os.Stderr
	started, err := localenv.Up(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	upClusters.Add(1)
	stop := sync.OnceValue(func() error {
		defer upClusters.Done()
		return started.Down(context.Background())
	})
	ended := context.AfterFunc(ctx, func() {
		fmt.Fprintln(os.Stderr, "interrupted: stopping the cluster")
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		upClusters.Wait()
		os.Exit(1)
	})
	return &Cluster{Cluster: started}, func() error {
		ended()
		return stop()
	}, nil
}

// RunController starts lockstep-controller for all tests of a package, on a cluster that runs
// none, and waits until it is ready.
func (c *Cluster) RunController(ctx context.Context, o localenv.ControllerOptions) error {
	var err error
	if c.controller, err = c.Cluster.StartController(ctx, o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("timed out after %v", Patience))
	defer cancel()
	return c.controller.WaitReady(ctx)
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// LoadImages makes images that `make images` has packed into a folder known to the
// real node.
func (c *Cluster) LoadImages(ctx context.Context, dir string, names ...string) error {
	for _, name := range names {
		if err := c.LoadImage(ctx, filepath.Join(dir, name+".tar")); err != nil {
			return err
		}
	}
	return nil
}
