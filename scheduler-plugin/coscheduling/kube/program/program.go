// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program is kube-scheduler's program, as far as a program with another default
// configuration can use it: its flags, and those for more scheduler names (--also-serve), for
// namespaces (--namespaces), its feature gates, and a copy of how it makes
// its scheduler (setup.go). What it is built from is in k8s.io/kubernetes/cmd.
package program

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/lockstep-k8s/lockstep/internal/logging"
)

// Defaults are what is not as in kube-scheduler.
type Defaults struct {
	// Name is the schedulerName that is served without --config, and the name of the
	// leader's lease.
	Name string
	// LeaseNamespace is where the lease is without --config.
	LeaseNamespace string
	// QPS and Burst bound the requests to the API server without --config.
	QPS   float32
	Burst int32
	// Plugin is the name of a plugin that some profile has to enable, and New makes it.
	Plugin string
	New    func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error)
	// CheckArgs says what is wrong with the plugin's arguments.
	CheckArgs func(args runtime.Object) error
}

// Program is what was asked for on the command line.
type Program struct {
	defaults Defaults
	opts     *options.Options
	// also are more scheduler names to serve.
	also []string
	// namespaces are those whose Pods are served. None are all.
	namespaces []string
}

// alsoServe is the flag for more scheduler names, and onlyIn that for namespaces.
const (
	alsoServe = "also-serve"
	onlyIn    = "namespaces"
)

// New makes a program with kube-scheduler's flags. Their help tells the defaults. It is an error
// if kube-scheduler has no such flags, which is so in all runs of a build or in none.
func New(defaults Defaults) (*Program, error) {
	p := &Program{defaults: defaults, opts: options.NewOptions()}
	if err := defaults.tell(p.opts.Flags); err != nil {
		return nil, err
	}
	p.opts.Flags.FlagSet(defaults.Name).StringSliceVar(&p.also, alsoServe, nil,
		"More scheduler names to serve, such as those that other tools write into their Pods. Each gets a copy of the first profile that enables "+defaults.Plugin+".")
	p.opts.Flags.FlagSet(defaults.Name).StringSliceVar(&p.namespaces, onlyIn, nil,
		"Namespaces whose Pods are placed, at most 100. Pods elsewhere are neither placed nor preempted. Default: all.")
	return p, nil
}

// tell has the help of kube-scheduler's flags tell these defaults.
func (d *Defaults) tell(flags *cliflag.NamedFlagSets) error {
	for set, values := range map[string]map[string]string{
		"deprecated":      {"kube-api-qps": fmt.Sprint(d.QPS), "kube-api-burst": fmt.Sprint(d.Burst)},
		"leader election": {"leader-elect-resource-name": d.Name, "leader-elect-resource-namespace": d.LeaseNamespace},
	} {
		for name, value := range values {
			flag := flags.FlagSet(set).Lookup(name)
			if flag == nil {
				return fmt.Errorf("kube-scheduler has no flag --%s among those of %s", name, set)
			}
			flag.DefValue = value
		}
	}
	return nil
}

// Flags are the program's flags, which the command line sets.
func (p *Program) Flags() *cliflag.NamedFlagSets {
	return p.opts.Flags
}

// Namespaces are those whose Pods are to be served. None are all. Cluster.FillIn sees to it.
func (p *Program) Namespaces() []string { return p.namespaces }

// Connection is what the flags say of how to connect to the API server: ConfigFile is a
// KubeSchedulerConfiguration, which goes before a Kubeconfig, and Master is the address.
type Connection struct {
	ConfigFile, Kubeconfig, Master string
}

// Connection is how to connect to the API server.
func (p *Program) Connection() Connection {
	return Connection{ConfigFile: p.opts.ConfigFile, Kubeconfig: p.opts.Deprecated.Kubeconfig, Master: p.opts.Master}
}

// OnlyWritesConfiguration says that the program is to write its configuration to a file
// and end.
func (p *Program) OnlyWritesConfiguration() bool {
	return p.opts.WriteConfigTo != ""
}

// SetGates sets the feature gates as the command line says, and returns them for more to
// be set. It comes before anything reads a gate, the defaults of the configuration among
// others.
func (p *Program) SetGates() (featuregate.MutableVersionedFeatureGate, error) {
	if err := p.opts.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	gates, ok := p.gates().(featuregate.MutableVersionedFeatureGate)
	if !ok {
		return nil, fmt.Errorf("the feature gates of %s can't be set", basecompatibility.DefaultKubeComponent)
	}
	return gates, nil
}

// SetLogs has logs be as the command line says.
func (p *Program) SetLogs() error {
	return logging.Set(p.opts.Logs, p.gates())
}

func (p *Program) gates() featuregate.FeatureGate {
	return p.opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
}
