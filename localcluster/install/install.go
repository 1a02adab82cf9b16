// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts Lockstep's CRDs and RBAC objects into a cluster.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "lockstep-local"

// sources are the files of the manifests, in the order in which they are applied.
var sources = []string{"crds/*.yaml", "namespace/namespace.yaml", "controller/rbac.yaml", "scheduler/rbac.yaml", "rbac/*.yaml"}

// Manifests reads the CRDs, the namespace and the RBAC objects of the manifests, CRDs first, then
// Namespaces, then the rest in the order of the files: an object never comes before what it lives in.
func Manifests(fsys fs.FS) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, source := range sources {
		files, err := fs.Glob(fsys, source)
		if err != nil {
			return nil, fmt.Errorf("listing manifests: %w", err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no manifests: %s matches nothing", source)
		}
		for _, file := range files {
			found, err := readFile(fsys, file)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return rank(a) - rank(b)
	})
	return objects, nil
}

func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	default:
		return 2
	}
}

func readFile(fsys fs.FS, file string) ([]*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("reading manifest: %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifest %s: %w", file, err)
		}
		// A kustomization may lie beside the objects; it is none.
		if len(object.Object) == 0 || object.GetKind() == "Kustomization" {
			continue
		}
		objects = append(objects, object)
	}
}

// Apply applies the objects by server-side apply and waits until the CRDs among them are
// established.
func Apply(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoveryClient))
	for _, object := range objects {
		if err := applyOne(ctx, client, mapper, object); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := waitEstablished(ctx, client, mapper, object); err != nil {
			return err
		}
	}
	return nil
}

func resourceFor(client dynamic.Interface, mapper apimeta.RESTMapper, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", describe(object), err)
	}
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		return client.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return client.Resource(mapping.Resource), nil
}

func applyOne(ctx context.Context, client dynamic.Interface, mapper apimeta.RESTMapper, object *unstructured.Unstructured) error {
	resource, err := resourceFor(client, mapper, object)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("applying %s: %w", describe(object), err)
	}
	return nil
}

func waitEstablished(ctx context.Context, client dynamic.Interface, mapper apimeta.RESTMapper, crd *unstructured.Unstructured) error {
	resource, err := resourceFor(client, mapper, crd)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		current, err := resource.Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return hasCondition(current, "Established", "True"), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be established: %w", describe(crd), err)
	}
	return nil
}

func hasCondition(object *unstructured.Unstructured, kind, status string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == kind && m["status"] == status
	})
}

func describe(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetName()
}
