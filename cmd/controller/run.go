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
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller"
	"github.com/lockstep-k8s/lockstep/controller/implicit"
	"github.com/lockstep-k8s/lockstep/controller/kueue"
	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/internal/leading"
	podgroupcontroller "github.com/lockstep-k8s/lockstep/podgroup/controller"
)

// podGroupWorkers is the number of PodGroups that are synced at the same time. A sync takes little more than one small
// write a second.
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
	parts, err := partsOf(clients, config, registry, f.onlyGroups)
	if err != nil {
		return err
	}
	if f.onlyGroups {
		crds, optional = ofPodGroups(crds), nil
	}
	health := &health{loops: parts.loops}
	lead := func(ctx context.Context) error {
		health.leads.Store(true)
		group, ctx := errgroup.WithContext(ctx)
		for _, run := range parts.run {
			group.Go(func() error { return run(ctx) })
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
		if !f.onlyGroups {
			tellWhatIsOff(ctx, config, discoverer)
		}
		if standby {
			return leadWhenElected(ctx, leases, config.LeaderElection, fence, health.hearLease, lead)
		}
		return lead(ctx)
	})
	err = group.Wait()
	parts.sendLastSpans(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	klog.FromContext(ctx).Info("Stopped")
	return nil
}

// parts are what runs while this replica leads.
type parts struct {
	run           []func(context.Context) error
	loops         map[string]loop
	sendLastSpans func(context.Context)
}

// partsOf makes the parts of the controller that are on.
func partsOf(clients controller.Clients, config *configv1alpha1.ControllerConfiguration, registry *prometheus.Registry, onlyGroups bool) (*parts, error) {
	p := &parts{loops: map[string]loop{}, sendLastSpans: func(context.Context) {}}
	var factory externalversions.SharedInformerFactory
	if onlyGroups {
		factory = controller.NewPodGroupFactory(clients, config.Namespaces)
	} else {
		frameworks, err := controller.New(clients, config, registry)
		if err != nil {
			return nil, err
		}
		factory, p.sendLastSpans = frameworks.PodGroupFactory(), frameworks.SendLastSpans
		p.run = append(p.run, frameworks.Run)
		p.loops["frameworks-and-jobs"] = loop{ready: frameworks.Ready, longest: frameworks.Longest}
	}
	// Without the kinds of other projects in the cluster these never fill, and all else goes on.
	implicits, err := implicit.New(clients, factory.Scheduling().V1alpha1().PodGroups(), config.Namespaces)
	if err != nil {
		return nil, err
	}
	p.run = append(p.run, implicits.Run)
	p.loops["implicit-podgroups"] = loop{longest: implicits.Longest}
	podGroups, err := podgroupcontroller.New(clients.Lockstep, clients.Kube, factory.Scheduling().V1alpha1().PodGroups(), config.Namespaces, implicits.Pods()...)
	if err != nil {
		return nil, err
	}
	p.run = append(p.run, func(ctx context.Context) error { return podGroups.Run(ctx, podGroupWorkers) })
	p.loops["podgroups"] = loop{ready: podGroups.Ready, longest: podGroups.Longest}
	if onlyGroups {
		p.run = append(p.run, func(ctx context.Context) error {
			factory.StartWithContext(ctx)
			<-ctx.Done()
			return nil
		})
		return p, nil
	}
	if *config.Kueue.Enabled {
		queues, err := kueue.New(clients.Dynamic, config.Namespaces, registry)
		if err != nil {
			return nil, err
		}
		p.run = append(p.run, queues.Run)
		p.loops["kueue"] = loop{longest: queues.Longest}
	}
	return p, nil
}

// ofPodGroups returns the CRD of PodGroups.
func ofPodGroups(crds []crd) []crd {
	return slices.DeleteFunc(crds, func(c crd) bool { return c.kind != schedulingv1alpha1.PodGroupGroupVersionKind })
}

// readOptionalCRDs reads those of the integrations that are on. They are not waited for.
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

// clientConfig returns how to reach the API server.
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
