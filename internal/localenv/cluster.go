// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localenv runs a real Kubernetes with Lockstep on this machine, for end-to-end tests, benchmarks and the demo.
//
// The cluster is made by lockstep-local, the program with which developers run Lockstep, so that tests see what users
// see. The package finds lockstep-local and Lockstep's programs in PATH; `make build` puts them into bin/.
package localenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	lockstep "github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// Options say what a cluster has.
type Options struct {
	// Dir is the folder for the state and the logs of the cluster. If a killed cluster has left files there, they are
	// removed first. Empty means a new temporary folder.
	Dir string
	// SimulatedNodes is how many nodes KWOK simulates. Each has NodeCPU cores and room for NodePods Pods. Zero values
	// mean the defaults of lockstep-local.
	SimulatedNodes int
	NodeCPU        string
	NodePods       int
	// RealNode adds a node with a kubelet and containerd, which needs root on Linux. The node has RealNodeCPU cores;
	// empty means all cores of the machine.
	RealNode    bool
	RealNodeCPU string
	// KubernetesVersion is the minor version of the API server, such as 1.36. Empty means the newest that
	// lockstep-local has. With RealNode only the newest is possible.
	KubernetesVersion string
	// RuntimeConfig enables and disables APIs of the API server, as its flag --runtime-config does. Empty keeps the
	// defaults. It can't be used with RealNode.
	RuntimeConfig string
	// FeatureGates enables and disables features of kube-apiserver and kube-controller-manager, as their flag
	// --feature-gates does. Empty keeps the defaults.
	FeatureGates string
	// Installed makes lockstep-local use programs that this machine has in a fitting version, and otherwise releases of
	// their projects, instead of building them.
	Installed bool
	// Audit lets the API server record which client changed what: see AuditLog.
	Audit bool
	// With is which of Lockstep's programs run: "controller,scheduler", either,
	// or "none". Empty means both.
	With string
	// Output gets what lockstep-local prints; nil discards the output.
	Output io.Writer
}

// Cluster is a running local Kubernetes.
type Cluster struct {
	// Dir holds state and logs.
	Dir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Config is what Kubeconfig says, without a rate limit.
	Config *rest.Config
	// Kube and Lockstep are clients made from Config; Kube speaks protobuf.
	Kube     kubernetes.Interface
	Lockstep lockstep.Interface

	temporary bool // Dir is removed with the cluster
	output    io.Writer
}

// Up starts a cluster and returns when the cluster is ready. If it fails, it removes everything of the cluster but the
// logs in a Dir that is not temporary. If another cluster runs in Dir, Up returns an error and leaves that cluster
// alone.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{Dir: o.Dir, output: o.Output}
	if o.Dir == "" {
		var err error
		if c.Dir, err = os.MkdirTemp("", "lockstep-local-"); err != nil {
			return nil, fmt.Errorf("making a folder for the cluster: %w", err)
		}
		c.temporary = true
	} else if _, err := os.Stat(o.Dir); err == nil {
		if err := refuseBesideAnother(o.Dir); err != nil {
			return nil, err
		}
		if err := c.Down(ctx); err != nil {
			return nil, err
		}
	}
	c.Kubeconfig = filepath.Join(c.Dir, "kubeconfig")
	if err := c.local(ctx, append([]string{"up"}, o.args()...)...); err != nil {
		if another := refuseBesideAnother(c.Dir); another != nil && endedByItself(err) {
			return nil, errors.Join(err, another) // it was faster
		}
		// lockstep-local takes down what it has started, but may not be done yet if it was killed.
		return nil, errors.Join(err, c.local(context.WithoutCancel(ctx), "down", "--keep-logs"), c.removeDir())
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.Down(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// endedByItself reports whether a program that has failed was not killed.
func endedByItself(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.Exited()
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
	if o.KubernetesVersion != "" {
		args = append(args, "--kubernetes-version", o.KubernetesVersion)
	}
	if o.RuntimeConfig != "" {
		args = append(args, "--runtime-config", o.RuntimeConfig)
	}
	if o.FeatureGates != "" {
		args = append(args, "--feature-gates", o.FeatureGates)
	}
	if o.Installed {
		args = append(args, "--installed")
	}
	if o.Audit {
		args = append(args, "--audit")
	}
	if o.With != "" {
		args = append(args, "--with", o.With)
	}
	return args
}

func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	config.QPS = -1 // callers wait for the server, not for a client's limiter
	config.DisableCompression = true
	c.Config = config
	// In protobuf, as lists of thousands of Pods are read again and again, and reading JSON
	// would keep the processors from what is tested. Custom resources know JSON only.
	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.Kube, err = kubernetes.NewForConfig(core); err != nil {
		return err
	}
	c.Lockstep, err = lockstep.NewForConfig(config)
	return err
}

// LoadImage gives the real node an image from a tar file that `make images` has made.
func (c *Cluster) LoadImage(ctx context.Context, tar string) error {
	return c.local(ctx, "load-image", tar)
}

// Down stops the cluster and removes the state.
func (c *Cluster) Down(ctx context.Context) error {
	if err := c.local(ctx, "down"); err != nil {
		return err
	}
	return c.removeDir()
}

// removeDir removes a temporary Dir. From any other folder, lockstep-local removes only its own files.
func (c *Cluster) removeDir() error {
	if !c.temporary {
		return nil
	}
	return os.RemoveAll(c.Dir)
}

// local runs lockstep-local. When ctx ends, local asks the program to end, and gives it a minute to clean up.
func (c *Cluster) local(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "lockstep-local", append(args, "--dir", c.Dir)...)
	cmd.Stdout, cmd.Stderr = c.output, c.output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	// Another Ctrl-C, or a closed terminal, does not end the cleanup.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: args[0] == "down"}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("lockstep-local %s: %w", args[0], err)
	}
	return nil
}
