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
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/manifests"
)

const (
	// labelMade is on what a demo has made. If it is killed before it takes its CRDs away, the next one does.
	labelMade = "demo.lockstep.dev/made"
	// fieldManager is as whom the demo applies CRDs.
	fieldManager = "lockstep-demo"
)

// makeKinds makes the CRDs of Lockstep, which go with the demo. Those that are somebody's stay as they are.
func (g *guest) makeKinds(ctx context.Context) error {
	client, err := dynamic.NewForConfig(g.cluster.Config)
	if err != nil {
		return err
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	want, err := readKinds()
	if err != nil {
		return err
	}
	// Who has objects of these kinds may have installed them in a way that the CRDs don't show, such as by Helm.
	theirs, err := g.kindsAreUsed(ctx)
	if err != nil {
		return err
	}
	absent := ""
	for _, crd := range want {
		switch there, err := crds.Get(ctx, crd.GetName(), metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
			absent = crd.GetName()
		case err != nil:
			return fmt.Errorf("looking for the CRD %s: %w", crd.GetName(), err)
		case isSomebodys(there):
			theirs = true
		}
	}
	switch {
	case theirs && absent != "":
		return fmt.Errorf("the cluster lacks the CRD %s and has the other one of Lockstep's: remove it, or install both", absent)
	case theirs:
		return nil
	}
	// They go last, after the namespace with objects of them.
	g.leave = slices.Insert(g.leave, 0, func(ctx context.Context) error { return g.removeKinds(ctx, crds, want) })
	for _, crd := range want {
		if err := unstructured.SetNestedField(crd.Object, "true", "metadata", "labels", labelMade); err != nil {
			return err
		}
		if _, err := crds.Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("making the CRD %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// isSomebodys says whether somebody has installed a CRD, which may have been over what a demo had made. The API server
// itself writes the status alone.
func isSomebodys(crd *unstructured.Unstructured) bool {
	return crd.GetLabels()[labelMade] == "" || slices.ContainsFunc(crd.GetManagedFields(), func(written metav1.ManagedFieldsEntry) bool {
		return written.Manager != fieldManager && written.Subresource != "status"
	})
}

// removeKinds takes the CRDs away, unless they have become somebody's, or he has begun to use them.
func (g *guest) removeKinds(ctx context.Context, crds dynamic.ResourceInterface, made []*unstructured.Unstructured) error {
	var left []*unstructured.Unstructured
	for _, crd := range made {
		switch there, err := crds.Get(ctx, crd.GetName(), metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("looking for the CRD %s: %w", crd.GetName(), err)
		case isSomebodys(there):
			return nil
		default:
			left = append(left, there)
		}
	}
	if used, err := g.kindsAreUsed(ctx); used || err != nil {
		return err
	}
	var errs []error
	for _, crd := range left {
		uid, version := crd.GetUID(), crd.GetResourceVersion()
		err := crds.Delete(ctx, crd.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if apierrors.IsConflict(err) {
			return g.removeKinds(ctx, crds, made) // Somebody has written it meanwhile.
		}
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("deleting the CRD %s: %w", crd.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// readKinds reads the CRDs of Lockstep's kinds.
func readKinds() ([]*unstructured.Unstructured, error) {
	files, err := manifests.Read("crds/*.yaml")
	if err != nil {
		return nil, err
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file.Content, &crd.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.Name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// kindsAreUsed says whether there are objects of Lockstep's kinds outside of the demo.
func (g *guest) kindsAreUsed(ctx context.Context) (bool, error) {
	elsewhere := metav1.ListOptions{FieldSelector: "metadata.namespace!=" + guestNamespace, Limit: 1}
	frameworks, err := g.cluster.Lockstep.FrameworkcontrollerV1().Frameworks("").List(ctx, elsewhere)
	if err == nil && len(frameworks.Items) > 0 {
		return true, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("looking for Frameworks: %w", err)
	}
	groups, err := g.cluster.Lockstep.SchedulingV1alpha1().PodGroups("").List(ctx, elsewhere)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("looking for PodGroups: %w", err)
	}
	return err == nil && len(groups.Items) > 0, nil
}
