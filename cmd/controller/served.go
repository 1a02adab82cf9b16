// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// The program reads discovery and the OpenAPI document of the API server, as every authenticated client may: to read
// the CRDs themselves is a right that the controller needs for nothing else.

// repair is what to do about wrong CRDs.
const repair = "apply manifests/crds of this version, or start with --install-crds"

// awaitCRDs waits until the API server serves all kinds that the controller needs. awaitCRDs logs the missing kinds at
// once, and again if it gives up.
func awaitCRDs(ctx context.Context, crds []crd, client discovery.DiscoveryInterface, config *configv1alpha1.ControllerConfiguration) error {
	interval := time.Duration(*config.CRDEstablishedCheckIntervalSec) * time.Second
	timeout := time.Duration(*config.CRDEstablishedCheckTimeoutSec) * time.Second
	logger := klog.FromContext(ctx)
	said := ""
	var problem error
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		if problem = checkServed(ctx, crds, client); problem != nil && problem.Error() != said {
			said = problem.Error()
			logger.Info("Waiting for the CRDs", "reason", said, "for", timeout)
		}
		return problem == nil, nil
	})
	if problem != nil && ctx.Err() == nil {
		return fmt.Errorf("after %v: %w", timeout, problem)
	}
	return err
}

// newDiscovery returns a discovery client with a time limit on requests. The discovery client of a clientset has no
// time limit.
func newDiscovery(config *rest.Config) (discovery.DiscoveryInterface, error) {
	config = rest.CopyConfig(config)
	config.Timeout = pacing.RequestTime
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	return client, nil
}

// checkServed finds the first thing that is wrong with what the API server serves.
func checkServed(ctx context.Context, crds []crd, client discovery.DiscoveryInterface) error {
	for _, crd := range crds {
		if err := crd.checkResources(client); err != nil {
			return err
		}
		switch served, err := servedSchema(client, crd.kind); {
		case apierrors.IsForbidden(err):
			klog.FromContext(ctx).V(2).Info("Can't tell whether the CRD is that of this version", "name", crd.object.GetName(), "reason", err.Error())
		case err != nil:
			return fmt.Errorf("reading the schema of %s: %w", crd.object.GetName(), err)
		default:
			if err := crd.checkSchema(served); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkResources wants the resource and its status to be served.
func (c crd) checkResources(client discovery.DiscoveryInterface) error {
	version := c.resource.GroupVersion()
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking the API server for %s: %w", version, err)
	}
	serves := func(name string) bool {
		return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	switch {
	case !serves(c.resource.Resource):
		return fmt.Errorf("the API server does not serve %s of %s: %s", c.resource.Resource, version, repair)
	case c.status && !serves(c.resource.Resource+"/status"):
		return fmt.Errorf("the CRD %s has no status subresource, as that of another product, so that no status could be written: %s",
			c.object.GetName(), repair)
	default:
		return nil
	}
}

// checkSchema returns an error if the served schema lacks fields of the CRD: the API server would drop these fields
// when it stores an object, and the controller would forget them.
func (c crd) checkSchema(served *spec.Schema) error {
	missing := missingFields("", c.schema, served)
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if len(missing) > 1 {
		more = fmt.Sprintf(" and %d more", len(missing)-1)
	}
	return fmt.Errorf("the CRD %s is older than this program: it has no field %s%s: %s", c.object.GetName(), missing[0], more, repair)
}

// servedMore returns the fields that would be lost if the CRD replaced the served one. servedMore returns none if the
// served CRD lacks a field that this program needs, or can't be read.
func (c crd) servedMore(client discovery.DiscoveryInterface) ([]string, error) {
	if c.checkResources(client) != nil {
		return nil, nil
	}
	served, err := servedSchema(client, c.kind)
	_, noGroup := errors.AsType[*openapi3.GroupVersionNotFoundError](err)
	switch {
	case apierrors.IsForbidden(err), noGroup, errors.Is(err, errNotInDocument):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the schema of %s: %w", c.object.GetName(), err)
	case c.checkSchema(served) != nil:
		return nil, nil
	default:
		return missingFields("", served, c.schema), nil
	}
}

// errNotInDocument is the error for a kind without a schema in the API server's OpenAPI document.
var errNotInDocument = errors.New("the API server's OpenAPI document does not have it")

// servedSchema returns the schema of a kind in the API server's OpenAPI document.
func servedSchema(client discovery.DiscoveryInterface, kind schema.GroupVersionKind) (*spec.Schema, error) {
	document, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(kind.GroupVersion())
	if err != nil {
		return nil, err
	}
	if document.Components != nil {
		for _, candidate := range document.Components.Schemas {
			var kinds []metav1.GroupVersionKind
			err := candidate.Extensions.GetObject("x-kubernetes-group-version-kind", &kinds)
			if err == nil && slices.Contains(kinds, metav1.GroupVersionKind(kind)) {
				return candidate, nil
			}
		}
	}
	return nil, errNotInDocument
}

// missingFields returns the fields of `wanted` that are missing in `served`, as sorted paths that begin with path.
// missingFields does not list the fields inside a missing field. A schema that preserves unknown fields lacks none.
func missingFields(path string, wanted, served *spec.Schema) []string {
	if preserves, _ := served.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); preserves {
		return nil
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(wanted.Properties)) {
		property, field := wanted.Properties[name], name
		if path != "" {
			field = path + "." + name
		}
		if other, ok := served.Properties[name]; ok {
			missing = append(missing, missingFields(field, &property, &other)...)
		} else {
			missing = append(missing, field)
		}
	}
	if wanted.Items != nil && wanted.Items.Schema != nil && served.Items != nil && served.Items.Schema != nil {
		missing = append(missing, missingFields(path+"[]", wanted.Items.Schema, served.Items.Schema)...)
	}
	return missing
}
