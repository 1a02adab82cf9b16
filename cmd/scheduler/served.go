// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube/program"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/served"
)

// fitGates asks the API server which APIs it serves, and sets the feature gates of the command line accordingly. Call
// it before anything is created that depends on a gate, such as the configuration.
func fitGates(ctx context.Context, p *program.Program, gates featuregate.MutableVersionedFeatureGate) (*served.APIs, error) {
	if p.OnlyWritesConfiguration() {
		return &served.APIs{}, nil // no cluster is needed for it
	}
	config, err := connection(p.Connection())
	if err != nil {
		return nil, err
	}
	apis, err := served.Ask(ctx, config)
	if err != nil {
		return nil, err
	}
	return apis, apis.FitGates(gates)
}

// endOnChange ends the program in an orderly way when it has to restart because the API server serves other APIs. A
// leader then releases its lease to another replica.
func endOnChange(ctx context.Context, end func(reason string), apis *served.APIs, config *rest.Config) {
	change, err := served.AwaitChange(ctx, apis, config)
	switch {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Nobody looks whether the API server is upgraded")
	case change != "":
		end(change)
	}
}

// connection returns the settings for connecting to the API server, the same as those of kube-scheduler's clients (with
// compression off, too). Clients with equal settings share a connection. Other settings would open a second connection,
// and a load balancer may route that one to an API server of another version.
func connection(to program.Connection) (*rest.Config, error) {
	config, err := configured(to)
	if err != nil {
		return nil, err
	}
	config.DisableCompression = true
	return rest.AddUserAgent(config, programName), nil
}

// configured returns the address and the credentials of the API server. They come from clientConnection in the file of
// --config. Without that file they come from --kubeconfig, and without --kubeconfig from the Pod's service account.
// configured reads nothing else of the file, because the defaults of other fields depend on feature gates.
func configured(to program.Connection) (*rest.Config, error) {
	kubeconfig := to.Kubeconfig
	if to.ConfigFile != "" {
		content, err := os.ReadFile(to.ConfigFile)
		if err != nil {
			return nil, err
		}
		var file struct {
			ClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"clientConnection"`
		}
		if err := yaml.Unmarshal(content, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", to.ConfigFile, err)
		}
		kubeconfig = file.ClientConnection.Kubeconfig
	}
	if kubeconfig == "" && to.Master == "" {
		// kube-scheduler does the same, and warns. Once is enough.
		if config, err := rest.InClusterConfig(); err == nil {
			return config, nil
		}
	}
	return clientcmd.BuildConfigFromFlags(to.Master, kubeconfig)
}
