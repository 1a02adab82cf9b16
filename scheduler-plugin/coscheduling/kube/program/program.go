// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program is kube-scheduler's program for use with another default configuration: the flags, with additional
// ones for scheduler names (--also-serve) and namespaces (--namespaces), the feature gates, and a copy of
// kube-scheduler's setup (setup.go). It is built from parts of k8s.io/kubernetes/cmd.
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

// Defaults are the differences from kube-scheduler.
type Defaults struct {
	// Name is the schedulerName that the program serves without --config, and the name of the lease for leader
	// election.
	Name string
	// LeaseNamespace is the namespace of the lease without --config.
	LeaseNamespace string
	// QPS and Burst limit the requests to the API server without --config.
	QPS   float32
	Burst int32
	// Plugin is the name of the plugin that at least one profile has to enable. New creates the plugin.
	Plugin string
	New    func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error)
	// CheckArgs returns an error if the plugin's arguments are invalid.
	CheckArgs func(args runtime.Object) error
}

// Program is the content of the command line.
type Program struct {
	defaults Defaults
	opts     *options.Options
	// also are additional scheduler names to serve.
	also []string
	// namespaces are the namespaces to which the scheduler is limited; empty for all.
	namespaces []string
}

// alsoServe is the flag for additional scheduler names, onlyIn the flag for namespaces.
const (
	alsoServe = "also-serve"
	onlyIn    = "namespaces"
)

// New returns a program with kube-scheduler's flags. Their help shows the given defaults. It returns an error if
// kube-scheduler lacks one of the flags, which depends only on the build.
func New(defaults Defaults) (*Program, error) {
	p := &Program{defaults: defaults, opts: options.NewOptions()}
	if err := defaults.tell(p.opts.Flags); err != nil {
		return nil, err
	}
	p.opts.Flags.FlagSet(defaults.Name).StringSliceVar(&p.also, alsoServe, nil,
		"More scheduler names to serve, such as those that other tools write into their Pods. Each gets a copy of the first profile that enables "+defaults.Plugin+".")
	p.opts.Flags.FlagSet(defaults.Name).StringSliceVar(&p.namespaces, onlyIn, nil,
		"Namespaces in which Pods are placed, at most 100. Pods elsewhere are neither placed nor preempted. Default: all.")
	return p, nil
}

// tell writes these defaults into the help of kube-scheduler's flags.
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

// Flags returns the program's flags, which the command line sets.
func (p *Program) Flags() *cliflag.NamedFlagSets {
	return p.opts.Flags
}

// Namespaces returns the namespaces to which the scheduler is limited; empty for all. Cluster.FillIn has to enforce the
// limit.
func (p *Program) Namespaces() []string { return p.namespaces }

// Connection is what the flags say about the connection to the API server. ConfigFile is the file of a
// KubeSchedulerConfiguration, which takes precedence over Kubeconfig. Master is the API server's address.
type Connection struct {
	ConfigFile, Kubeconfig, Master string
}

// Connection returns how to connect to the API server.
func (p *Program) Connection() Connection {
	return Connection{ConfigFile: p.opts.ConfigFile, Kubeconfig: p.opts.Deprecated.Kubeconfig, Master: p.opts.Master}
}

// OnlyWritesConfiguration reports whether the program is to write its configuration to a file and then exit.
func (p *Program) OnlyWritesConfiguration() bool {
	return p.opts.WriteConfigTo != ""
}

// SetGates sets the feature gates from the command line and returns them, so that the caller can set more. Call it
// before anything reads a gate. Filling in the configuration's defaults reads gates, too.
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

// SetLogs configures logging from the command line.
func (p *Program) SetLogs() error {
	return logging.Set(p.opts.Logs, p.gates())
}

func (p *Program) gates() featuregate.FeatureGate {
	return p.opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
}
