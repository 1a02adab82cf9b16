// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testbed gives end-to-end tests a real cluster, Lockstep in it, and
// ways to wait for what a user would wait for.
//
// A cluster is made by bin/lockstep-local, the same program that serves
// development and the demo, so that tests see what a user sees. It is found in
// PATH; `make e2e` puts bin/ there.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	lockstep "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// Options say what a cluster has.
type Options struct {
	// SimulatedNodes is how many nodes KWOK simulates, each of NodeCPU cores
	// and NodePods Pods.
	SimulatedNodes int
	NodeCPU        string
	NodePods       int
	// RealNode adds a kubelet with containerd, of RealNodeCPU cores.
	RealNode    bool
	RealNodeCPU string
	// With is which of Lockstep's programs run: "controller,scheduler", either,
	// or "none".
	With string
}

// Cluster is a running local Kubernetes.
type Cluster struct {
	// Dir holds its state and logs.
	Dir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Config is what Kubeconfig says, without a rate limit.
	Config *rest.Config
	// Kube and Lockstep are clients made from Config.
	Kube     kubernetes.Interface
	Lockstep lockstep.Interface
}

// Up starts a cluster and returns when it is ready. Its state is in a new
// folder that Down removes.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "lockstep-e2e-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	if err := c.run(ctx, append([]string{"up", "--kubeconfig", c.Kubeconfig}, o.args()...)...); err != nil {
		return nil, errors.Join(err, c.Down(context.WithoutCancel(ctx)))
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.Down(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (o Options) args() []string {
	args := []string{"--simulated-nodes", strconv.Itoa(o.SimulatedNodes)}
	if o.NodeCPU != "" {
		args = append(args, "--node-cpu", o.NodeCPU)
	}
	if o.NodePods != 0 {
		args = append(args, "--node-pods", strconv.Itoa(o.NodePods))
	}
	if o.RealNode {
		args = append(args, "--real-node")
	}
	if o.RealNodeCPU != "" {
		args = append(args, "--real-node-cpu", o.RealNodeCPU)
	}
	if o.With != "" {
		args = append(args, "--with", o.With)
	}
	return args
}

func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // tests wait for the server, not for a client's limiter
	config.DisableCompression = true
	c.Config = config
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	c.Lockstep, err = lockstep.NewForConfig(config)
	return err
}

// Down stops the cluster and removes its state.
func (c *Cluster) Down(ctx context.Context) error {
	if err := c.run(ctx, "down"); err != nil {
		return err
	}
	return os.RemoveAll(c.Dir)
}

// Kubectl runs the cluster's own kubectl and returns what it printed, both
// streams. An error is that of its exit.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Dir, "bin", "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// KubectlApply applies a manifest as `kubectl apply -f -` does.
func (c *Cluster) KubectlApply(ctx context.Context, namespace, manifest string) (string, error) {
	return c.kubectlStdin(ctx, manifest, "apply", "--namespace", namespace, "-f", "-")
}

func (c *Cluster) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "lockstep-local", append(args, "--dir", c.Dir)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("lockstep-local %s: %w", args[0], err)
	}
	return nil
}
