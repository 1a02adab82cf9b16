// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served lets the embedded kube-scheduler run on API servers that serve
// less than it watches.
//
// kube-scheduler places nothing before all of its informers have synced, and an
// informer of a resource that the API server does not serve never does. Kubernetes
// promises nothing for a kube-scheduler that is newer than the API server, but
// lockstep-scheduler has one version for all clusters. So it asks discovery at
// start (Ask), and then
//
//   - switches off what may be switched off (FitGates),
//   - gives the scheduler informers without objects where the feature is locked on
//     (FillIn), and lets Pods that need such objects be told (TellPods),
//   - says in a line what is missing (Remark).
//
// Later it asks again and again, and ends if what it was made for does not hold any more (AwaitChange).
//
// Resources are asked for and not the version of the API server: an administrator
// can switch single ones on and off. It is a package of its own because it is about
// kube-scheduler alone: it knows nothing of gangs, and the plugin nothing of it.
package served

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// patience is how long the API server is asked before the program gives up.
	patience = time.Minute
	// interval is the time between two attempts.
	interval = time.Second
	// answerTimeout bounds one request, so that one that hangs is tried again.
	answerTimeout = 10 * time.Second
)

// What kube-scheduler watches and some API servers that still run do not serve.
var (
	resourceClaims     = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	resourceSlices     = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	deviceClasses      = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}
	deviceTaintRules   = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}
	podGroups          = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
	compositePodGroups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha3", Resource: "compositepodgroups"}
)

// asked are the resources that discovery is asked for.
var asked = []schema.GroupVersionResource{
	resourceClaims, resourceSlices, deviceClasses, deviceTaintRules, podGroups, compositePodGroups,
}

// APIs are what an API server was found to serve when it was asked. The zero value
// stands for an API server that serves everything.
type APIs struct {
	version string
	missing []schema.GroupVersionResource
	// taintsAreFixed says that device taint rules are heeded or not whatever is served.
	taintsAreFixed bool
}

// Ask asks an API server which resources it serves. It asks again for a minute
// while there is no answer; the error is then that of the last request.
func Ask(ctx context.Context, config *rest.Config) (*APIs, error) {
	config = rest.CopyConfig(config)
	config.Timeout = answerTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for discovery: %w", err)
	}
	logger := klog.FromContext(ctx)
	var apis *APIs
	var problem error
	err = wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		found, err := ask(ctx, client)
		if err == nil {
			apis = found
			return true, nil
		}
		if problem != nil && ctx.Err() != nil {
			return false, nil // the end of the time says less than the problem before
		}
		if problem == nil || problem.Error() != err.Error() {
			logger.Info("Waiting for the API server to say what it serves", "reason", err.Error(), "atMost", patience)
		}
		problem = err
		return false, nil
	})
	switch {
	case err == nil:
		return apis, nil
	case ctx.Err() != nil || problem == nil:
		return nil, err
	default:
		return nil, fmt.Errorf("the API server did not say within %v what it serves: %w", patience, problem)
	}
}

// ask asks once.
func ask(ctx context.Context, client *discovery.DiscoveryClient) (*APIs, error) {
	apis := &APIs{}
	lists := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, resource := range asked {
		version := resource.GroupVersion()
		list, ok := lists[version]
		if !ok {
			var err error
			list, err = client.ServerResourcesForGroupVersionWithContext(ctx, version.String())
			switch {
			case apierrors.IsNotFound(err):
				list = &metav1.APIResourceList{}
			case err != nil:
				return nil, fmt.Errorf("asking for the resources of %s: %w", version, err)
			}
			lists[version] = list
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			apis.missing = append(apis.missing, resource)
		}
	}
	info, err := client.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for the version: %w", err)
	}
	apis.version = info.GitVersion
	return apis, nil
}

func (a *APIs) serves(resource schema.GroupVersionResource) bool {
	return !slices.Contains(a.missing, resource)
}

// Remark says in one line what the API server lacks of what the scheduler watches
// by default, and what that means. It is empty if nothing is missing.
func (a *APIs) Remark() string {
	var remarks []string
	if claims := a.missingForClaims(); len(claims) > 0 {
		remarks = append(remarks, describe(claims...)+", so Pods with resource claims wait, or run without their devices where the API server drops the claims")
	}
	if !a.serves(deviceTaintRules) {
		remarks = append(remarks, describe(deviceTaintRules)+", so device taint rules are not heeded (the feature gate DRADeviceTaintRules is off)")
	}
	if len(remarks) == 0 {
		return ""
	}
	return fmt.Sprintf("API server %s does not serve %s; everything else is scheduled",
		a.version, strings.Join(remarks, "; nor "))
}

// missingForClaims are the resources without which no Pod with a claim can be
// placed.
func (a *APIs) missingForClaims() []schema.GroupVersionResource {
	var missing []schema.GroupVersionResource
	for _, kind := range claimKinds {
		if !a.serves(kind.resource) {
			missing = append(missing, kind.resource)
		}
	}
	return missing
}

// describe names resources of one group version.
func describe(resources ...schema.GroupVersionResource) string {
	var names []string
	for _, r := range resources {
		names = append(names, r.Resource)
	}
	return strings.Join(names, ", ") + " of " + resources[0].GroupVersion().String()
}
