// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// integration is a part of the controller that runs only if the configuration enables it.
type integration struct {
	// key is the setting of the integration, and on says whether it is set.
	key string
	on  bool
	// kinds are the resources of the kinds that the integration runs, by group and version. The integration can run if
	// the API server serves at least one of them.
	kinds map[string][]string
}

func integrationsOf(config *configv1alpha1.ControllerConfiguration) []integration {
	return []integration{
		{"kubeflowJobs.enabled", *config.KubeflowJobs.Enabled, map[string][]string{
			"kubeflow.org/v1":      {"jaxjobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"},
			"kubeflow.org/v2beta1": {"mpijobs"},
		}},
		{"kueue.enabled", *config.Kueue.Enabled, map[string][]string{"kueue.x-k8s.io/v1beta2": {"workloads"}}},
		{"volcanoJobs.enabled", *config.VolcanoJobs.Enabled, map[string][]string{"batch.volcano.sh/v1alpha1": {"jobs"}}},
	}
}

// tellWhatIsOff logs which integrations are off although the cluster has their kinds. This may be intended, if another
// controller runs these jobs, or a sign that the configuration was lost.
func tellWhatIsOff(ctx context.Context, config *configv1alpha1.ControllerConfiguration, client discovery.DiscoveryInterface) {
	logger := klog.FromContext(ctx)
	off, err := servedButOff(integrationsOf(config), client)
	if err != nil {
		logger.V(2).Info("Can't tell whether the cluster has kinds that are switched off", "reason", err.Error())
	}
	if len(off) > 0 {
		logger.Info("The cluster has kinds that this controller leaves alone, because its configuration does not switch them on", "off", off)
	}
}

// servedButOff returns the keys of the integrations that are off although the API server serves one of
// their kinds.
func servedButOff(integrations []integration, client discovery.DiscoveryInterface) (off []string, err error) {
	for _, f := range integrations {
		if f.on {
			continue
		}
		for version, kinds := range f.kinds {
			list, failed := client.ServerResourcesForGroupVersion(version)
			switch {
			case apierrors.IsNotFound(failed):
			case failed != nil:
				err = errors.Join(err, fmt.Errorf("asking the API server for %s: %w", version, failed))
			case slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return slices.Contains(kinds, r.Name) }):
				off = append(off, f.key)
			}
		}
	}
	return slices.Compact(off), err
}
