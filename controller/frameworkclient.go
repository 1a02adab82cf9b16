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

// frameworkClient is what the controller does to single Frameworks.
type frameworkClient struct {
	frameworks rest.Interface
	metadata   metadata.Interface
}

// acceptMetadata asks the API server to answer with the metadata of an object: the
// status that was just sent need not come back.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// UpdateStatus replaces the status by that of a Framework in JSON, if its UID and
// resource version are the current ones, and returns the metadata after that. It is a
// conflict if they are not.
func (c frameworkClient) UpdateStatus(ctx context.Context, key cache.ObjectName, framework []byte) (metav1.ObjectMeta, error) {
	data, err := c.frameworks.Put().Resource(frameworkv1.FrameworkPlural).Namespace(key.Namespace).Name(key.Name).SubResource("status").
		SetHeader("Accept", acceptMetadata).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(framework).Do(ctx).Raw()
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	var updated metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &updated); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("decoding the answer of the API server: %w", err)
	}
	return updated.ObjectMeta, nil
}

// Get reads the Framework from the API server.
func (c frameworkClient) Get(ctx context.Context, key cache.ObjectName) (*frameworkEntry, error) {
	data, err := c.frameworks.Get().Resource(frameworkv1.FrameworkPlural).Namespace(key.Namespace).Name(key.Name).
		SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	return decodeFramework(data)
}

// Delete deletes the Framework.
func (c frameworkClient) Delete(ctx context.Context, key cache.ObjectName, options metav1.DeleteOptions) error {
	return c.metadata.Resource(frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)).
		Namespace(key.Namespace).Delete(ctx, key.Name, options)
}

// frameworksOf gets and deletes the Frameworks of one namespace.
type frameworksOf struct {
	client    frameworkClient
	namespace string
}

// Get reads a Framework from the API server.
func (f frameworksOf) Get(ctx context.Context, name string, _ metav1.GetOptions) (*frameworkEntry, error) {
	return f.client.Get(ctx, cache.NewObjectName(f.namespace, name))
}

// Delete deletes a Framework.
func (f frameworksOf) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return f.client.Delete(ctx, cache.NewObjectName(f.namespace, name), options)
}
