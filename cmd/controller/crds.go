// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/manifests"
)

// installCRDs applies the CRDs that this program was built with, by server-side
// apply: what others have added to them stays.
func installCRDs(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("--install-crds: %w", err)
	}
	resource := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	files, err := fs.Glob(manifests.FS, "crds/*.yaml")
	if err != nil {
		return fmt.Errorf("--install-crds: %w", err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(manifests.FS, file)
		if err != nil {
			return fmt.Errorf("--install-crds: %w", err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &crd.Object); err != nil {
			return fmt.Errorf("--install-crds: reading %s: %w", file, err)
		}
		options := metav1.ApplyOptions{FieldManager: programName, Force: true}
		if _, err := resource.Apply(ctx, crd.GetName(), crd, options); err != nil {
			return fmt.Errorf("--install-crds: applying %s: %w", crd.GetName(), err)
		}
		klog.FromContext(ctx).Info("Installed a CRD", "name", crd.GetName())
	}
	return nil
}
