// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// frameworkWriter is what the controller does to Frameworks. None of it needs
// more than their metadata in return.
type frameworkWriter interface {
	// PatchStatus applies a JSON patch to the status subresource and returns the
	// Framework's new resource version.
	PatchStatus(ctx context.Context, key cache.ObjectName, patch []byte) (string, error)
	// Metadata reads the Framework's metadata from the API server.
	Metadata(ctx context.Context, key cache.ObjectName) (metav1.Object, error)
	// Delete deletes the Framework.
	Delete(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error
}

// metadataWriter writes Frameworks by a client to which the API server answers
// with metadata only: the status that was just sent need not come back.
type metadataWriter struct {
	client metadata.Interface
}

func (w metadataWriter) frameworks(key cache.ObjectName) metadata.ResourceInterface {
	return w.client.Resource(frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)).Namespace(key.Namespace)
}

// PatchStatus implements frameworkWriter.
func (w metadataWriter) PatchStatus(ctx context.Context, key cache.ObjectName, patch []byte) (string, error) {
	patched, err := w.frameworks(key).Patch(ctx, key.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return "", err
	}
	return patched.ResourceVersion, nil
}

// Metadata implements frameworkWriter.
func (w metadataWriter) Metadata(ctx context.Context, key cache.ObjectName) (metav1.Object, error) {
	return w.frameworks(key).Get(ctx, key.Name, metav1.GetOptions{})
}

// Delete implements frameworkWriter.
func (w metadataWriter) Delete(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error {
	return w.frameworks(key).Delete(ctx, key.Name, options)
}
