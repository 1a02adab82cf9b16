// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served lets the embedded kube-scheduler run on API servers that serve less than kube-scheduler watches.
//
// kube-scheduler places nothing before all of its informers have synced, and an informer of a resource that the API
// server does not serve never syncs. Kubernetes does not support a kube-scheduler that is newer than the API server,
// but lockstep-scheduler has one version for all clusters. So lockstep-scheduler asks discovery at start (Ask), and
// then
//
//   - turns off features that may be turned off (FitGates),
//   - gives the scheduler informers without objects where the feature is locked on (FillIn), and reports
//     to Pods that need such objects that these do not exist (TellPods),
//   - logs in one line what is missing (Remark).
//
// Later the program asks again at intervals, and exits if the answer has changed (AwaitChange).
//
// The package asks for resources and not for the version of the API server, because an administrator can turn single
// resources on and off. It is about kube-scheduler only, and knows nothing of gangs.
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
	// answerTimeout limits one request, so that a hanging request is tried again.
	answerTimeout = 10 * time.Second
)

// Resources that kube-scheduler watches and some API servers in use do not serve.
var (
	resourceClaims     = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	resourceSlices     = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	deviceClasses      = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}
	deviceTaintRules   = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}
	podGroups          = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
	compositePodGroups = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1alpha3", Resource: "compositepodgroups"}
)

// asked are the resources for which discovery is asked.
var asked = []schema.GroupVersionResource{
	resourceClaims, resourceSlices, deviceClasses, deviceTaintRules, podGroups, compositePodGroups,
}

// APIs is what an API server serves, as it said when asked. The zero value stands for an API server that serves
// everything.
type APIs struct {
	version string
	missing []schema.GroupVersionResource
	// taintsAreFixed reports that the feature for device taint rules is on or off whatever the API server serves.
	taintsAreFixed bool
}

// Ask asks an API server which resources it serves. If there is no answer, it retries for up to patience, and then
// returns the error of the last request.
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
			return false, nil // the last request's error says more than that the time is over
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

// Remark returns a line that names the resources that the scheduler watches by default and the API server does not
// serve, with the consequences. It is "" if all are served.
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

// missingForClaims returns those missing resources without which no Pod with a ResourceClaim can be placed.
func (a *APIs) missingForClaims() []schema.GroupVersionResource {
	var missing []schema.GroupVersionResource
	for _, kind := range claimKinds {
		if !a.serves(kind.resource) {
			missing = append(missing, kind.resource)
		}
	}
	return missing
}

// describe returns the names of resources of one group version.
func describe(resources ...schema.GroupVersionResource) string {
	var names []string
	for _, r := range resources {
		names = append(names, r.Resource)
	}
	return strings.Join(names, ", ") + " of " + resources[0].GroupVersion().String()
}
