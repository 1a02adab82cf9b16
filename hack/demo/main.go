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
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	lockstep "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// patience bounds the whole demo once the cluster is up.
const patience = 8 * time.Minute

type options struct {
	realNode bool
	keep     bool
	manifest string
	image    string
	dir      string
}

func main() {
	var o options
	flag.BoolVar(&o.realNode, "real-node", false, "run containers on a real node (needs root on Linux) instead of simulating them")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster running at the end")
	flag.StringVar(&o.manifest, "manifest", "examples/training/training.yaml", "the training job")
	flag.StringVar(&o.image, "image", "bin/images/training.tar", "its image, packed by make images")
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), fmt.Sprintf("lockstep-demo-%d", os.Getuid())), "folder for the cluster's state")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.realNode {
		fmt.Println("Lockstep demo, on a real node: kubelet and containerd run real containers on this machine.")
	} else {
		fmt.Println("Lockstep demo, on simulated nodes: a real node needs root on Linux. Pods are simulated, nothing is trained.")
	}
	kubeconfig := filepath.Join(o.dir, "admin.kubeconfig")
	if err := up(ctx, o, kubeconfig); err != nil {
		return err
	}
	if !o.keep {
		// Also after Ctrl-C: the cluster must not outlive the demo.
		defer func() { err = errors.Join(err, down(context.WithoutCancel(ctx), o.dir)) }()
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := lockstep.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := &play{
		options: o, kube: kube, lockstep: client, screen: newScreen(os.Stdout),
		kubectl: func(stdin []byte, args ...string) error { return kubectl(ctx, o.dir, kubeconfig, stdin, args...) },
	}
	if err := p.perform(ctx); err != nil {
		return fmt.Errorf("%w\nlogs of the cluster: %s", err, filepath.Join(o.dir, "logs"))
	}
	whereToLook(o, kubeconfig)
	return nil
}

// up starts a cluster with one node of one core: room for one job.
func up(ctx context.Context, o options, kubeconfig string) error {
	// A demo that was killed may have left its cluster.
	if _, err := os.Stat(o.dir); err == nil {
		if err := down(ctx, o.dir); err != nil {
			return err
		}
	}
	args := []string{"up", "--dir", o.dir, "--kubeconfig", kubeconfig}
	if o.realNode {
		args = append(args, "--real-node", "--real-node-cpu", "1")
	} else {
		args = append(args, "--simulated-nodes", "1", "--node-cpu", "1")
	}
	if err := command(ctx, "lockstep-local", args...).Run(); err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	if !o.realNode {
		return nil
	}
	if err := command(ctx, "lockstep-local", "load-image", o.image, "--dir", o.dir).Run(); err != nil {
		return errors.Join(fmt.Errorf("loading the image of the training job: %w", err), down(ctx, o.dir))
	}
	return nil
}

func down(ctx context.Context, dir string) error {
	if err := command(ctx, "lockstep-local", "down", "--dir", dir).Run(); err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	return os.RemoveAll(dir)
}

func kubectl(ctx context.Context, dir, kubeconfig string, stdin []byte, args ...string) error {
	cmd := command(ctx, filepath.Join(dir, "bin", "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	return cmd.Run()
}

// command runs a program on the demo's own screen. Ctrl-C reaches it as SIGTERM,
// so that it can clean up.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

func whereToLook(o options, kubeconfig string) {
	fmt.Print(`
Seen: a gang that started whole, was retried whole after a failure, and a second
one that waited whole and said why.

Where to look further:
  examples/training/training.yaml   the job
  docs/getting-started.md           the same, step by step
  docs/architecture.md              how it works
`)
	if o.keep {
		fmt.Printf("The cluster is still running:\n  export KUBECONFIG=%s\n  bin/lockstep-local down --dir %s\n", kubeconfig, o.dir)
	} else {
		fmt.Println("To keep the cluster and look around in it: make demo KEEP=1")
	}
}
