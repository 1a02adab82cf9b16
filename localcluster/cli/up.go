// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
	"github.com/lockstep-k8s/lockstep/localcluster/realnode"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

// upFlags are the flags of `up` as they are given; options turns them into cluster.Options.
type upFlags struct {
	dir, kubeconfig, binDir, manifests string
	with                               string
	controllerArgs, schedulerArgs      []string
	kubernetesVersion, runtimeConfig   string
	featureGates                       string
	audit                              bool
	simulatedNodes                     int
	nodeCPU, nodeMemory                string
	nodePods                           int64
	realNode                           bool
	realNodeCPU                        string
	programs                           programFlags
}

func newUp() *cobra.Command {
	flags := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and return when it is ready",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd, flags)
		},
	}
	f := cmd.Flags()
	dirFlag(cmd, &flags.dir)
	f.StringVar(&flags.kubeconfig, "kubeconfig", "", "also write the administrator's kubeconfig to this file")
	f.StringVar(&flags.with, "with", "controller,scheduler", "programs of Lockstep to start: controller, scheduler, both, or none")
	f.StringVar(&flags.binDir, "bin-dir", "", "directory of lockstep-controller and lockstep-scheduler (default the one of lockstep-local)")
	f.StringArrayVar(&flags.controllerArgs, "controller-args", nil, "argument for lockstep-controller; may be repeated")
	f.StringArrayVar(&flags.schedulerArgs, "scheduler-args", nil, "argument for lockstep-scheduler; may be repeated")
	f.StringVar(&flags.manifests, "manifests", "", "install the CRDs, the namespace and the roles of this directory, laid out as manifests/, instead of the built-in ones")
	kubernetesVersionFlag(cmd, &flags.kubernetesVersion)
	f.StringVar(&flags.runtimeConfig, "runtime-config", "", "APIs to switch on or off, as for kube-apiserver: resource.k8s.io/v1=false,…")
	f.StringVar(&flags.featureGates, "feature-gates", "", "features to switch on or off, as for kube-apiserver and kube-controller-manager: GenericWorkload=true,…")
	f.BoolVar(&flags.audit, "audit", false, "have the API server write down who changed what, in logs/audit.log")
	f.IntVar(&flags.simulatedNodes, "simulated-nodes", 0, "number of simulated nodes")
	f.StringVar(&flags.nodeCPU, "node-cpu", "32", "processors of each simulated node")
	f.StringVar(&flags.nodeMemory, "node-memory", "256Gi", "memory of each simulated node")
	f.Int64Var(&flags.nodePods, "node-pods", 110, "Pods that each simulated node admits")
	f.BoolVar(&flags.realNode, "real-node", false, "add a node that runs containers (Linux, root)")
	f.StringVar(&flags.realNodeCPU, "real-node-cpu", "", "processors that Pods may request on the real node (default all)")
	flags.programs.add(cmd)
	return cmd
}

func kubernetesVersionFlag(cmd *cobra.Command, minor *string) {
	var known []string
	for _, r := range components.Releases() {
		known = append(known, r.Minor)
	}
	cmd.Flags().StringVar(minor, "kubernetes-version", components.Newest().Minor,
		"version of kube-apiserver and kube-controller-manager: "+strings.Join(known, ", "))
}

func up(cmd *cobra.Command, flags *upFlags) error {
	began := time.Now()
	options, err := flags.options()
	if err != nil {
		return err
	}
	if err := options.Validate(runtime.NumCPU()); err != nil {
		return err
	}
	if options.RealNode {
		if err := realnode.CheckPrerequisites(); err != nil {
			return err
		}
	}
	layout := cluster.Layout{Dir: options.Dir}
	if err := supervisor.CheckDir(layout); err != nil {
		return err
	}
	if err := supervisor.CheckKubeconfig(options.Kubeconfig); err != nil {
		return err
	}
	own, err := findOwnPrograms(options)
	if err != nil {
		return err
	}
	wanted := components.ControlPlane(options.Release())
	if options.SimulatedNodes > 0 {
		wanted = append(wanted, components.SimulatedNodes()...)
	}
	if options.RealNode {
		wanted = append(wanted, components.RealNode()...)
	}
	binaries, err := flags.programs.ensure(cmd, wanted)
	if err != nil {
		return err
	}
	for name, path := range own {
		binaries[name] = path
	}
	progress := progressTo(cmd.ErrOrStderr(), began)
	order := supervisor.Order{Options: *options, Binaries: binaries}
	if err := supervisor.Launch(cmd.Context(), order, func(line string) { progress("%s", line) }); err != nil {
		return err
	}
	progress("ready")
	printUsage(cmd.OutOrStdout(), layout, options)
	return nil
}

// options parses the flags. cluster.Options.Validate judges the values.
func (f *upFlags) options() (*cluster.Options, error) {
	layout, err := layoutOf(f.dir)
	if err != nil {
		return nil, err
	}
	o := &cluster.Options{
		Dir:               layout.Dir,
		ControllerArgs:    f.controllerArgs,
		SchedulerArgs:     f.schedulerArgs,
		KubernetesVersion: f.kubernetesVersion,
		RuntimeConfig:     f.runtimeConfig,
		FeatureGates:      f.featureGates,
		Audit:             f.audit,
		SimulatedNodes:    f.simulatedNodes,
		NodePods:          f.nodePods,
		RealNode:          f.realNode,
	}
	if o.With, err = cluster.ParseWith(f.with); err != nil {
		return nil, err
	}
	if o.NodeCPU, err = parseQuantity("--node-cpu", f.nodeCPU); err != nil {
		return nil, err
	}
	if o.NodeMemory, err = parseQuantity("--node-memory", f.nodeMemory); err != nil {
		return nil, err
	}
	if f.realNodeCPU != "" {
		q, err := parseQuantity("--real-node-cpu", f.realNodeCPU)
		if err != nil {
			return nil, err
		}
		o.RealNodeCPU = &q
	}
	for _, p := range []struct {
		flag, value string
		target      *string
	}{
		{"--kubeconfig", f.kubeconfig, &o.Kubeconfig},
		{"--manifests", f.manifests, &o.Manifests},
		{"--bin-dir", f.binDir, &o.BinDir},
	} {
		if p.value == "" {
			continue
		}
		// The supervisor works in another directory.
		if *p.target, err = filepath.Abs(p.value); err != nil {
			return nil, fmt.Errorf("%s: %w", p.flag, err)
		}
	}
	if o.BinDir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding the executable: %w", err)
		}
		o.BinDir = filepath.Dir(self)
	}
	return o, nil
}

func parseQuantity(flag, value string) (resource.Quantity, error) {
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return q, fmt.Errorf("%s %q is not a quantity such as 4, 500m or 16Gi", flag, value)
	}
	return q, nil
}

// findOwnPrograms returns the binaries of Lockstep's programs that the options ask for.
func findOwnPrograms(o *cluster.Options) (map[string]string, error) {
	own := map[string]string{}
	for _, name := range o.With {
		path := filepath.Join(o.BinDir, "lockstep-"+name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return nil, fmt.Errorf("--with %s: no lockstep-%s in %s: build it, name its directory by --bin-dir, or use --with none", name, name, o.BinDir)
		}
		own[name] = path
	}
	return own, nil
}

// progressTo writes lines with the time since began in front. Goroutines may call it side by side.
func progressTo(w io.Writer, began time.Time) func(format string, args ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
}

func printUsage(w io.Writer, layout cluster.Layout, o *cluster.Options) {
	kubeconfig := layout.Kubeconfig()
	if o.Kubeconfig != "" {
		kubeconfig = o.Kubeconfig
	}
	fmt.Fprintf(w, `
The cluster is ready. To use it:

  export KUBECONFIG=%[1]s
  export PATH=%[2]s:$PATH
  kubectl get nodes

To see what runs, and to stop it:

  lockstep-local status --dir %[3]s
  lockstep-local down --dir %[3]s
`, kubeconfig, layout.Bin(), layout.Dir)
}
