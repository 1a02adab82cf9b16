// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller"
	"github.com/lockstep-k8s/lockstep/controller/kueue"
	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/internal/leading"
	podgroupcontroller "github.com/lockstep-k8s/lockstep/podgroup/controller"
)

// podGroupWorkers is how many PodGroups are kept at the same time. Each takes little
// more than one small write a second.
const podGroupWorkers = 16

// run runs both controllers until ctx ends.
func run(ctx context.Context, f *flags, config *configv1alpha1.ControllerConfiguration) error {
	restConfig, err := clientConfig(config)
	if err != nil {
		return err
	}
	leases, err := newLeaseClient(restConfig)
	if err != nil {
		return err
	}
	fence := leading.NewFence(leaseDuration)
	restConfig.Wrap(fence.Wrap)
	clients, err := controller.NewClients(restConfig)
	if err != nil {
		return err
	}
	discoverer, err := newDiscovery(restConfig)
	if err != nil {
		return err
	}
	crds, err := readCRDs(ownCRDs)
	if err != nil {
		return err
	}
	optional, err := readOptionalCRDs(config)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(buildinfo.Collector(programName))
	frameworks, err := controller.New(clients, config, registry)
	if err != nil {
		return err
	}
	podGroups, err := podgroupcontroller.New(clients.Lockstep, clients.Kube,
		frameworks.PodGroupFactory().Scheduling().V1alpha1().PodGroups(), config.Namespaces)
	if err != nil {
		return err
	}
	var queues *kueue.Controller
	if *config.Kueue.Enabled {
		if queues, err = kueue.New(clients.Dynamic, config.Namespaces, registry); err != nil {
			return err
		}
	}
	health := &health{loops: map[string]loop{
		"frameworks-and-jobs": {ready: frameworks.Ready, longest: frameworks.Longest},
		"podgroups":           {ready: podGroups.Ready, longest: podGroups.Longest},
	}}
	if queues != nil { // Without Kueue in the cluster they never fill, and all else goes on.
		health.loops["kueue"] = loop{longest: queues.Longest}
	}
	lead := func(ctx context.Context) error {
		health.leads.Store(true)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return frameworks.Run(ctx) })
		group.Go(func() error { return podGroups.Run(ctx, podGroupWorkers) })
		if queues != nil {
			group.Go(func() error { return queues.Run(ctx) })
		}
		return group.Wait()
	}
	standby := *config.LeaderElection.Enabled
	health.leads.Store(!standby)
	servers, err := f.serving.listen(health, metricsHandler(registry), restConfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, servers) })
	group.Go(func() error {
		if f.installCRDs {
			if err := installCRDs(ctx, slices.Concat(crds, optional), restConfig, discoverer); err != nil {
				return err
			}
		}
		if err := awaitCRDs(ctx, crds, discoverer, config); err != nil {
			return err
		}
		health.served.Store(true)
		tellWhatIsOff(ctx, config, discoverer)
		if standby {
			return leadWhenElected(ctx, leases, config.LeaderElection, fence, health.hearLease, lead)
		}
		return lead(ctx)
	})
	err = group.Wait()
	frameworks.SendLastSpans(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	klog.FromContext(ctx).Info("Stopped")
	return nil
}

// readOptionalCRDs reads those of the front ends that are on. They are not waited for.
func readOptionalCRDs(config *configv1alpha1.ControllerConfiguration) ([]crd, error) {
	var optional []crd
	for pattern, enabled := range map[string]bool{volcanoCRDs: *config.VolcanoJobs.Enabled, kubeflowCRDs: *config.KubeflowJobs.Enabled} {
		if !enabled {
			continue
		}
		more, err := readCRDs(pattern)
		if err != nil {
			return nil, err
		}
		optional = append(optional, more...)
	}
	return optional, nil
}

// clientConfig says how to reach the API server.
func clientConfig(config *configv1alpha1.ControllerConfiguration) (*rest.Config, error) {
	path, address := *config.KubeConfigFilePath, *config.KubeAPIServerAddress
	restConfig, err := clientcmd.BuildConfigFromFlags(address, path)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server (kubeconfig %q, address %q): %w", path, address, err)
	}
	restConfig.QPS, restConfig.Burst = *config.KubeClientQPS, int(*config.KubeClientBurst)
	restConfig.UserAgent = programName
	// As Kubernetes' own controllers do: the API server would compress every Pod
	// event for every watch, which costs it more than the network gains.
	restConfig.DisableCompression = true
	return restConfig, nil
}
