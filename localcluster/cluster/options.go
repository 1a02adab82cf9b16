// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster decides what a local cluster consists of: from options, a directory, ports
// and a network it derives every process with its arguments, and every file's place. It starts
// nothing; package supervisor does.
package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
	"github.com/lockstep-k8s/lockstep/localcluster/simnodes"
)

// Names of Lockstep's own programs, as `--with` and `logs` know them. Their binaries are
// called lockstep-<name>.
const (
	Controller = "controller"
	Scheduler  = "scheduler"
)

// RealNodeName is the name of the node that runs containers.
const RealNodeName = "real-0"

// maxDirLength keeps the runtime's socket under Dir within the 107 bytes that Linux allows for
// the path of a Unix socket.
const maxDirLength = 107 - len("/node/containerd.sock.ttrpc")

// Options is what a user asks of `up`.
type Options struct {
	// Dir holds all state of the cluster; absolute.
	Dir string
	// Kubeconfig is where a kubeconfig of an administrator is written in addition to
	// Dir/kubeconfig; empty means nowhere.
	Kubeconfig string
	// BinDir holds lockstep-controller and lockstep-scheduler.
	BinDir string
	// Manifests is a directory laid out as manifests/ to install instead of the built-in
	// manifests; empty means the built-in ones.
	Manifests string
	// With names the programs of Lockstep to start: Controller, Scheduler.
	With []string
	// ControllerArgs and SchedulerArgs are given to the programs after the arguments that
	// lockstep-local sets.
	ControllerArgs, SchedulerArgs []string

	// KubernetesVersion is the minor version of kube-apiserver and kube-controller-manager, such
	// as 1.36; empty means the newest.
	KubernetesVersion string
	// RuntimeConfig switches APIs of the API server on and off, as its flag --runtime-config
	// does; empty leaves them as they come.
	RuntimeConfig string
	// FeatureGates switches features of kube-apiserver and kube-controller-manager on and off, as
	// their flag --feature-gates does; empty leaves them as they come.
	FeatureGates string
	// Audit has the API server write down who changed what, in Layout.AuditLog.
	Audit bool

	// SimulatedNodes is the number of Nodes that KWOK plays.
	SimulatedNodes int
	// NodeCPU, NodeMemory and NodePods are the capacity of each simulated Node.
	NodeCPU, NodeMemory resource.Quantity
	NodePods            int64

	// RealNode asks for a node that runs containers.
	RealNode bool
	// RealNodeCPU is what Pods may request on it; nil means all processors of the machine.
	RealNodeCPU *resource.Quantity
}

// Validate returns the first thing wrong with the options, naming the flag. cpus is the number
// of processors of the machine.
func (o *Options) Validate(cpus int) error {
	switch {
	case !filepath.IsAbs(o.Dir):
		return fmt.Errorf("--dir %q is not an absolute path", o.Dir)
	case o.Dir == "/":
		return errors.New("--dir / is not allowed: down removes what is in it")
	case o.SimulatedNodes < 0 || o.SimulatedNodes > simnodes.MaxNodes:
		return fmt.Errorf("--simulated-nodes %d is not between 0 and %d", o.SimulatedNodes, simnodes.MaxNodes)
	case o.NodeCPU.Sign() <= 0:
		return fmt.Errorf("--node-cpu %s is not above 0", o.NodeCPU.String())
	case o.NodeMemory.Sign() <= 0:
		return fmt.Errorf("--node-memory %s is not above 0", o.NodeMemory.String())
	case o.NodePods < 1:
		return fmt.Errorf("--node-pods %d is not above 0", o.NodePods)
	}
	for _, name := range o.With {
		if name != Controller && name != Scheduler {
			return fmt.Errorf("--with %q: want a list of %s and %s, or none", name, Controller, Scheduler)
		}
	}
	if len(o.ControllerArgs) > 0 && !slices.Contains(o.With, Controller) {
		return errors.New("--controller-args is given, but --with does not start the controller")
	}
	if len(o.SchedulerArgs) > 0 && !slices.Contains(o.With, Scheduler) {
		return errors.New("--scheduler-args is given, but --with does not start the scheduler")
	}
	if _, err := components.FindRelease(o.KubernetesVersion); err != nil {
		return fmt.Errorf("--kubernetes-version %w", err)
	}
	return o.validateRealNode(cpus)
}

func (o *Options) validateRealNode(cpus int) error {
	if o.RealNode && o.RuntimeConfig != "" {
		return errors.New("--runtime-config is given with --real-node, whose authorizer needs the APIs that come with Kubernetes")
	}
	if !o.RealNode {
		if o.RealNodeCPU != nil {
			return errors.New("--real-node-cpu is given without --real-node")
		}
		return nil
	}
	if err := CheckRealNodeRelease(o.Release()); err != nil {
		return err
	}
	if len(o.Dir) > maxDirLength {
		return fmt.Errorf("--dir is %d bytes long, and with --real-node it may have at most %d (the limit for Unix sockets)", len(o.Dir), maxDirLength)
	}
	if q := o.RealNodeCPU; q != nil && (q.Sign() <= 0 || q.MilliValue() > int64(cpus)*1000) {
		return fmt.Errorf("--real-node-cpu %s is not above 0 and at most %d, the processors of this machine", q.String(), cpus)
	}
	return nil
}

// CheckRealNodeRelease says whether a node that runs containers can join a control plane of a
// release. The error names the flags.
func CheckRealNodeRelease(release components.Release) error {
	newest := components.Newest()
	if release == newest {
		return nil
	}
	return fmt.Errorf("--kubernetes-version %s is given with --real-node, whose kubelet is of %s and may not be newer than the API server: only --kubernetes-version %s goes with it",
		release.Minor, newest.Minor, newest.Minor)
}

// Release is the release of Kubernetes that valid options ask for.
func (o *Options) Release() components.Release {
	release, err := components.FindRelease(o.KubernetesVersion)
	if err != nil {
		return components.Newest() // not of valid options
	}
	return release
}

// Starts tells whether the options ask for one of Lockstep's programs.
func (o *Options) Starts(name string) bool {
	return slices.Contains(o.With, name)
}

// ParseWith reads the value of --with: a comma-separated list, or none.
func ParseWith(value string) ([]string, error) {
	if value == "none" {
		return nil, nil
	}
	var out []string
	for name := range strings.SplitSeq(value, ",") {
		if name != Controller && name != Scheduler {
			return nil, fmt.Errorf("--with %q: want a list of %s and %s, or none", value, Controller, Scheduler)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
