// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// offByDefault are the features that need an informer, but are off by default.
var offByDefault = []struct {
	feature  featuregate.Feature
	resource schema.GroupVersionResource
}{
	{kube.GenericWorkload, podGroups},
	{kube.CompositePodGroup, compositePodGroups},
}

// FitGates adapts feature gates to the API server. It turns off features that are on by default and need a resource
// that is not served. If the user has turned on a feature that needs such a resource, FitGates returns an error,
// because the feature would not work.
//
// Call it when the gates have the values of the command line, and before anything has read them.
func (a *APIs) FitGates(gates featuregate.MutableVersionedFeatureGate) error {
	for _, off := range offByDefault {
		if gates.Enabled(off.feature) && !a.serves(off.resource) {
			return cantHave(a, off.feature, off.resource)
		}
	}
	const taints = kube.DRADeviceTaintRules
	a.taintsAreFixed = gates.ExplicitlySet(taints) || !gates.Enabled(taints)
	if a.serves(deviceTaintRules) || !gates.Enabled(taints) {
		return nil
	}
	if gates.ExplicitlySet(taints) {
		return cantHave(a, taints, deviceTaintRules)
	}
	off := map[string]bool{string(taints): false}
	if quiet, ok := gates.(featuregate.MutableFeatureGateWithLogger); ok {
		// The gate would otherwise warn that the user sets a stable feature.
		return quiet.SetFromMapWithLogger(klog.Logger{}, off)
	}
	return gates.SetFromMap(off)
}

func cantHave(a *APIs, feature featuregate.Feature, resource schema.GroupVersionResource) error {
	return fmt.Errorf("the feature gate %s is on, but API server %s does not serve %s: leave the gate off, or have the API server serve them",
		feature, a.version, describe(resource))
}
