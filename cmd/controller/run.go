// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller"
	podgroupcontroller "github.com/lockstep-k8s/lockstep/podgroup/controller"
)

// podGroupWorkers is how many PodGroups are kept at the same time. Each takes at
// most one small write a window, see the PodGroup controller's WithWindow.
const podGroupWorkers = 16

// run runs both controllers until ctx ends.
func run(ctx context.Context, f *flags, config *configv1alpha1.ControllerConfiguration) error {
	restConfig, err := clientConfig(config)
	if err != nil {
		return err
	}
	clients, err := controller.NewClients(restConfig)
	if err != nil {
		return err
	}
	leases, err := newLeaseClient(restConfig)
	if err != nil {
		return err
	}
	if f.installCRDs {
		if err := installCRDs(ctx, restConfig); err != nil {
			return err
		}
	}
	if err := awaitCRDs(ctx, clients.Kube.Discovery(), config); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	frameworks, err := controller.New(clients, config, registry)
	if err != nil {
		return err
	}
	podGroups, err := podgroupcontroller.New(clients.Lockstep, clients.Kube,
		podgroupcontroller.WithPodGroupInformer(frameworks.PodGroupFactory().Scheduling().V1alpha1().PodGroups()))
	if err != nil {
		return err
	}
	lead := func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return frameworks.Run(ctx) })
		group.Go(func() error { return podGroups.Run(ctx, podGroupWorkers) })
		return group.Wait()
	}
	standby := *config.LeaderElection.Enabled
	health, err := newHealthServer(f.healthAddress, registry, func() bool { return standby || frameworks.Ready() })
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return health.run(ctx) })
	group.Go(func() error {
		if standby {
			return leadWhenElected(ctx, leases, config.LeaderElection, lead)
		}
		return lead(ctx)
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	klog.FromContext(ctx).Info("Stopped")
	return nil
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

// awaitCRDs waits until the API server serves what the controller works with.
func awaitCRDs(ctx context.Context, client discovery.DiscoveryInterface, config *configv1alpha1.ControllerConfiguration) error {
	interval := time.Duration(*config.CRDEstablishedCheckIntervalSec) * time.Second
	timeout := time.Duration(*config.CRDEstablishedCheckTimeoutSec) * time.Second
	kinds := map[string]schema.GroupVersion{
		frameworkv1.FrameworkPlural: frameworkv1.SchemeGroupVersion,
		"podgroups":                 schedulingv1alpha1.SchemeGroupVersion,
	}
	var missing error
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(context.Context) (bool, error) {
		missing = nil
		for resource, version := range kinds {
			if err := served(client, version, resource); err != nil {
				missing = err
				klog.FromContext(ctx).V(2).Info("Waiting for the API server", "reason", err.Error())
				return false, nil
			}
		}
		return true, nil
	})
	if missing != nil && ctx.Err() == nil {
		return fmt.Errorf("after %v: %w", timeout, missing)
	}
	return err
}

func served(client discovery.DiscoveryInterface, version schema.GroupVersion, resource string) error {
	resources, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return fmt.Errorf("the API server does not serve %s of %s; are the CRDs installed (--install-crds)? %w", resource, version, err)
	}
	for _, served := range resources.APIResources {
		if served.Name == resource {
			return nil
		}
	}
	return fmt.Errorf("the API server does not serve %s of %s; are the CRDs installed (--install-crds)?", resource, version)
}
