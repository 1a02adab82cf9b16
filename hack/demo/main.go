// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo runs the main job of Lockstep on a local Kubernetes and tells what
// happens: two training jobs, room for one.
//
// The first job starts whole; one of its workers fails, and the whole attempt is
// run again. The second waits whole, holding nothing, and says why; it starts
// when the first is done. The demo fails unless it has seen all of that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/interrupt"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/statedir"
)

// patience bounds the whole demo once the cluster is up.
const patience = 8 * time.Minute

type options struct {
	realNode   bool
	keep       bool
	manifest   string
	image      string
	dir        string
	kubeconfig string
	imageName  string
}

// namespace is where the jobs are.
func (o options) namespace() string {
	if o.kubeconfig != "" {
		return guestNamespace
	}
	return "default"
}

// simulated says whether no container runs.
func (o options) simulated() bool { return !o.realNode && o.kubeconfig == "" }

func main() {
	var o options
	flag.BoolVar(&o.realNode, "real-node", false, "run containers on a real node (needs root on Linux) instead of simulating them")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster running at the end")
	flag.StringVar(&o.manifest, "manifest", "examples/training/training.yaml", "the training job")
	flag.StringVar(&o.image, "image", "bin/images/training.tar", "its image, packed by make images")
	flag.StringVar(&o.dir, "dir", "", "folder for the cluster's state (default $XDG_STATE_HOME/lockstep-local/demo or ~/.local/state/lockstep-local/demo)")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "run in the cluster of this kubeconfig instead of a local one, with its rights, which must be those of an administrator")
	flag.StringVar(&o.imageName, "image-name", "", "name by which the nodes of that cluster can pull the image of the training job, or have it")
	flag.Parse()

	// A terminal that closes takes no text any more: what was brought is taken away then, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := interrupt.Context()
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.dir == "" {
		if o.dir, err = statedir.Default("demo"); err != nil {
			return err
		}
	}
	if o.kubeconfig != "" {
		return runAsGuest(ctx, o)
	}
	return runLocally(ctx, o)
}

// runAsGuest runs the demo in the cluster of a kubeconfig.
func runAsGuest(ctx context.Context, o options) (err error) {
	if o.imageName == "" {
		return errors.New("--image-name is needed with --kubeconfig: the name by which the nodes can pull the image of the training job")
	}
	fmt.Printf("Lockstep demo, in the cluster of %s: Lockstep runs on this machine and serves the namespace %s alone.\n", o.kubeconfig, guestNamespace)
	cluster, err := localenv.Attach(o.dir, o.kubeconfig)
	if err != nil {
		return err
	}
	g := &guest{cluster: cluster}
	defer func() {
		// Also after Ctrl-C: the cluster is somebody's.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, g.Leave(ctx))
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := g.enter(ctx); err != nil {
		return err
	}
	if err := perform(ctx, o, cluster); err != nil {
		return err
	}
	whereToLook()
	return nil
}

// perform plays the demo in a cluster.
func perform(ctx context.Context, o options, cluster *localenv.Cluster) error {
	p := &play{options: o, cluster: cluster, screen: newScreen(os.Stdout)}
	if err := p.perform(ctx); err != nil {
		return fmt.Errorf("%w\nlogs of the programs: %s", err, cluster.Logs())
	}
	return nil
}

// runLocally runs the demo in a cluster on this machine, which is made for it.
func runLocally(ctx context.Context, o options) (err error) {
	if o.realNode {
		fmt.Println("Lockstep demo, on a real node: kubelet and containerd run real containers on this machine.")
	} else {
		fmt.Println("Lockstep demo, on simulated nodes: a real node needs root on Linux. Pods are simulated, nothing is trained.")
	}
	cluster, err := localenv.Up(ctx, o.cluster())
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	if !o.keep {
		// Also after Ctrl-C: the cluster must not outlive the demo.
		defer func() { err = errors.Join(err, cluster.Down(context.WithoutCancel(ctx))) }()
	}
	if o.realNode {
		if err := cluster.LoadImage(ctx, o.image); err != nil {
			return fmt.Errorf("loading the image of the training job: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := perform(ctx, o, cluster); err != nil {
		return err
	}
	whereToLook()
	if o.keep {
		fmt.Printf("The cluster is still running:\n  export KUBECONFIG=%s PATH=$PWD/bin:%s:$PATH\n  kubectl lockstep get\n  bin/lockstep-local down --dir %s\n",
			cluster.Kubeconfig, cluster.Bin(), o.dir)
	} else {
		fmt.Println("To keep the cluster and look around in it: make demo KEEP=1")
	}
	return nil
}

// cluster is one with a single node of one core: room for one job.
func (o options) cluster() localenv.Options {
	if o.realNode {
		return localenv.Options{Dir: o.dir, RealNode: true, RealNodeCPU: "1", Installed: true, Output: os.Stdout}
	}
	return localenv.Options{Dir: o.dir, SimulatedNodes: 1, NodeCPU: "1", Installed: true, Output: os.Stdout}
}

func whereToLook() {
	fmt.Print(`
Seen: a gang that started whole, was retried whole after a failure, and a second
one that waited whole and said why.

Where to look further:
  examples/training/training.yaml   the job
  docs/getting-started.md           the same, step by step
  docs/architecture.md              how it works
`)
}
