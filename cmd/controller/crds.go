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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/manifests"
)

// crd is a CustomResourceDefinition that this program was built with.
type crd struct {
	object *unstructured.Unstructured

	// What the CRD says of its resource, in the stored version.
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	status   bool // It has the status subresource.
	schema   *spec.Schema
}

// Where the CRDs are: Lockstep's own, and those of Volcano's and Kubeflow's kinds.
const (
	ownCRDs      = "crds/*.yaml"
	volcanoCRDs  = "volcano/*_*.yaml"
	kubeflowCRDs = "kubeflow/*_*.yaml"
)

// readCRDs reads the CRDs in manifests by a pattern of their names.
func readCRDs(pattern string) ([]crd, error) {
	files, err := manifests.Read(pattern)
	if err != nil {
		return nil, err
	}
	crds := make([]crd, len(files))
	for i, file := range files {
		if crds[i], err = newCRD(file.Content); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.Name, err)
		}
	}
	return crds, nil
}

func newCRD(data []byte) (crd, error) {
	c := crd{object: &unstructured.Unstructured{}}
	if err := yaml.Unmarshal(data, &c.object.Object); err != nil {
		return c, err
	}
	type version struct {
		Name         string `json:"name"`
		Storage      bool   `json:"storage"`
		Subresources struct {
			Status *struct{} `json:"status"`
		} `json:"subresources"`
		Schema struct {
			OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
		} `json:"schema"`
	}
	var definition struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind   string `json:"kind"`
				Plural string `json:"plural"`
			} `json:"names"`
			Versions []version `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return c, err
	}
	i := slices.IndexFunc(definition.Spec.Versions, func(v version) bool { return v.Storage })
	if i < 0 {
		return c, errors.New("spec.versions must have one that is stored")
	}
	stored := definition.Spec.Versions[i]
	group := schema.GroupVersion{Group: definition.Spec.Group, Version: stored.Name}
	c.resource = group.WithResource(definition.Spec.Names.Plural)
	c.kind = group.WithKind(definition.Spec.Names.Kind)
	c.status = stored.Subresources.Status != nil
	c.schema = stored.Schema.OpenAPIV3Schema
	return c, nil
}

// labelPartOf marks Lockstep's CRDs. A CRD for a kind of another product may be Lockstep's, or the product's own, which
// lacks the label.
const labelPartOf = "app.kubernetes.io/part-of"

// installCRDs applies CRDs by server-side apply. In Lockstep's own CRDs it overwrites what other clients have set in
// versions with schemas, subresources and printer columns. Labels and other fields that other clients have set stay.
//
//   - An existing CRD of another product is left alone if it lacks Lockstep's label, or if another client has set the fields to change.
//   - A newer CRD always stays: with an older CRD, the API server would drop fields from every object that is written.
func installCRDs(ctx context.Context, crds []crd, config *rest.Config, served discovery.DiscoveryInterface) error {
	resource, err := crdClient(config)
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx)
	for _, crd := range crds {
		name, label := crd.object.GetName(), crd.object.GetLabels()[labelPartOf]
		own := label == ""
		if !own {
			there, err := resource.Get(ctx, name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("--install-crds: reading %s: %w", name, err)
			}
			if err == nil && there.GetLabels()[labelPartOf] != label {
				logger.Info("Left a CRD as it is, because it may be another product's", "name", name)
				continue
			}
		}
		switch more, err := crd.servedMore(served); {
		case err != nil:
			return fmt.Errorf("--install-crds: %w", err)
		case len(more) > 0:
			logger.Info("Left a CRD as it is, because it is newer than this program", "name", name, "fields", more)
			continue
		}
		switch _, err := resource.Apply(ctx, name, crd.object, metav1.ApplyOptions{FieldManager: programName, Force: own}); {
		case !own && apierrors.IsConflict(err):
			logger.Info("Left a CRD as it is, because others have written it", "name", name, "conflict", err.Error())
		case err != nil:
			return fmt.Errorf("--install-crds: applying %s: %w", name, err)
		default:
			logger.Info("Installed a CRD", "name", name)
		}
	}
	return nil
}

func crdClient(config *rest.Config) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("--install-crds: %w", err)
	}
	return client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}), nil
}
