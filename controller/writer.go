// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// frameworkWriter is what the controller does to Frameworks. None of it needs
// more than their metadata in return.
type frameworkWriter interface {
	// UpdateStatus replaces the status by that of a Framework in JSON, if its UID
	// and resource version are the current ones, and returns the new resource
	// version. It is a conflict if they are not.
	UpdateStatus(ctx context.Context, key cache.ObjectName, framework []byte) (string, error)
	// Metadata reads the Framework's metadata from the API server.
	Metadata(ctx context.Context, key cache.ObjectName) (metav1.Object, error)
	// Delete deletes the Framework.
	Delete(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error
}

// metadataWriter writes Frameworks by clients to which the API server answers
// with metadata only: the status that was just sent need not come back.
type metadataWriter struct {
	client metadata.Interface
	// updates sends what the metadata client can't: objects.
	updates rest.Interface
}

func (w metadataWriter) frameworks(key cache.ObjectName) metadata.ResourceInterface {
	return w.client.Resource(frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)).Namespace(key.Namespace)
}

// acceptMetadata asks the API server to answer with the metadata of an object.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// UpdateStatus implements frameworkWriter.
func (w metadataWriter) UpdateStatus(ctx context.Context, key cache.ObjectName, framework []byte) (string, error) {
	data, err := w.updates.Put().Resource(frameworkv1.FrameworkPlural).Namespace(key.Namespace).Name(key.Name).SubResource("status").
		SetHeader("Accept", acceptMetadata).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(framework).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var updated metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &updated); err != nil {
		return "", fmt.Errorf("decoding the answer of the API server: %w", err)
	}
	return updated.ResourceVersion, nil
}

// Metadata implements frameworkWriter.
func (w metadataWriter) Metadata(ctx context.Context, key cache.ObjectName) (metav1.Object, error) {
	return w.frameworks(key).Get(ctx, key.Name, metav1.GetOptions{})
}

// Delete implements frameworkWriter.
func (w metadataWriter) Delete(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error {
	return w.frameworks(key).Delete(ctx, key.Name, options)
}
