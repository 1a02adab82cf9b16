// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localenv runs a real Kubernetes with Lockstep on this machine, and works on the cluster: for end-to-end
// tests, benchmarks and the demo.
//
// lockstep-local, the program that serves development, makes the cluster, so that all users of this package see what
// a user sees. lockstep-local and Lockstep's programs are found in PATH; `make build` puts these into bin/.
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
	// Dir holds the state and the logs of the cluster. The remains of a killed cluster there are removed first. Empty
	// means a new temporary folder.
	Dir string
	// SimulatedNodes is how many nodes KWOK simulates, each of NodeCPU cores
	// and NodePods Pods. Empty and 0 mean the defaults of lockstep-local.
	SimulatedNodes int
	NodeCPU        string
	NodePods       int
	// RealNode adds a kubelet with containerd, of RealNodeCPU cores. Empty means all cores of the machine. Root on Linux
	// is needed.
	RealNode    bool
	RealNodeCPU string
	// KubernetesVersion is the minor version of the API server, such as 1.36. Empty
	// means the newest that lockstep-local has. Not an older one with RealNode.
	KubernetesVersion string
	// RuntimeConfig switches APIs of the API server on and off, as the flag --runtime-config does. Empty keeps the
	// defaults. Not with RealNode.
	RuntimeConfig string
	// FeatureGates switches features of kube-apiserver and kube-controller-manager on and off, as the flag
	// --feature-gates does. Empty keeps the defaults.
	FeatureGates string
	// Installed uses programs of this machine where the versions fit, and else those that their projects publish,
	// instead of builds of lockstep-local.
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

// Up starts a cluster and returns when the cluster is ready. After a failure nothing of the cluster is left, except
// the logs in a Dir that is not temporary. If a cluster runs in Dir, Up returns an error and leaves that cluster
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

// LoadImage makes an image, packed into a tar by `make images`, known to the real
// node.
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

// local runs lockstep-local. When ctx ends, the program is asked to end, and has a minute to clean up.
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
