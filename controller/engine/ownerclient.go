// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// ownerClient sends the engine's requests about single owners. It implements Client by reading and deleting owners.
type ownerClient[O Owner] struct {
	Resource
	metadata metadata.Interface
	decode   func(data []byte) (*entry[O], error)
}

// acceptMetadata makes the API server answer with an object's metadata alone. Otherwise the answer would also contain
// the status that was just sent.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// UpdateStatus replaces the status of an owner, and returns the new metadata. owner is JSON with the status and the
// owner's identity. If the UID or the resource version is not the current one, the error is a conflict.
func (c ownerClient[O]) UpdateStatus(ctx context.Context, key cache.ObjectName, owner []byte) (metav1.ObjectMeta, error) {
	data, err := c.API.Put().Resource(c.Plural).Namespace(key.Namespace).Name(key.Name).SubResource("status").
		Param("fieldManager", FieldManager).
		SetHeader("Accept", acceptMetadata).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(owner).Do(ctx).Raw()
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	var updated metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &updated); err != nil {
		return metav1.ObjectMeta{}, fmt.Errorf("decoding the answer of the API server: %w", err)
	}
	return updated.ObjectMeta, nil
}

// Read reads an owner from the API server.
func (c ownerClient[O]) Read(ctx context.Context, key cache.ObjectName) (*entry[O], error) {
	data, err := c.API.Get().Resource(c.Plural).Namespace(key.Namespace).Name(key.Name).
		SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	return c.decode(data)
}

// Get reads the metadata and the spec of an owner.
func (c ownerClient[O]) Get(ctx context.Context, namespace, name string) (metav1.Object, error) {
	read, err := c.Read(ctx, cache.NewObjectName(namespace, name))
	if err != nil {
		return nil, err
	}
	return read.owner, nil
}

// Delete deletes an owner.
func (c ownerClient[O]) Delete(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	return c.metadata.Resource(c.GroupVersion().WithResource(c.Plural)).Namespace(namespace).Delete(ctx, name, options)
}

// errNotByCores is what a core meets that lists, creates or changes owners.
var errNotByCores = errors.New("cores only get and delete owners")

// List fails.
func (c ownerClient[O]) List(context.Context, string, metav1.ListOptions) ([]metav1.Object, string, error) {
	return nil, "", errNotByCores
}

// Create fails.
func (c ownerClient[O]) Create(context.Context, string, metav1.Object) (metav1.Object, error) {
	return nil, errNotByCores
}

// Patch fails.
func (c ownerClient[O]) Patch(context.Context, string, string, types.PatchType, []byte) (metav1.Object, error) {
	return nil, errNotByCores
}

// withStatus returns an owner as JSON with nothing but its identity and a status, which is all that an update of the
// status needs. The API server refuses the update with a conflict if the UID or the resource version is not the current
// one. A JSON patch would take the API server more time, because it would first encode the stored status.
func (c ownerClient[O]) withStatus(owner O, version string, status []byte) ([]byte, error) {
	type identity struct {
		Name            string    `json:"name"`
		Namespace       string    `json:"namespace"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	}
	head, err := json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        identity `json:"metadata"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: c.GroupVersion().String(), Kind: c.Kind},
		Metadata: identity{Name: owner.GetName(), Namespace: owner.GetNamespace(), UID: owner.GetUID(), ResourceVersion: version},
	})
	if err != nil {
		return nil, err
	}
	// The status is JSON already. To embed the status by Marshal would scan all of it again.
	object := bytes.NewBuffer(make([]byte, 0, len(head)+len(status)+len(`,"status":`)))
	object.Write(bytes.TrimSuffix(head, []byte("}")))
	object.WriteString(`,"status":`)
	object.Write(status)
	object.WriteString("}")
	return object.Bytes(), nil
}
