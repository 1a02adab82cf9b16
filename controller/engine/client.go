// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Client reads and writes objects of one kind.
type Client interface {
	Get(ctx context.Context, namespace, name string) (metav1.Object, error)
	// List returns a page of objects, and the token of the next page; "" after the last page.
	List(ctx context.Context, namespace string, options metav1.ListOptions) (page []metav1.Object, next string, err error)
	Create(ctx context.Context, namespace string, object metav1.Object) (metav1.Object, error)
	Patch(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (metav1.Object, error)
	Delete(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error
}

// Generated is the interface of a generated client for one kind in one namespace. T is the type of the object, and L
// the type of its list.
type Generated[T metav1.Object, L runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// ClientOf makes a Client of a generated one: of clientset.CoreV1().Pods, say.
func ClientOf[T metav1.Object, L runtime.Object, G Generated[T, L]](in func(namespace string) G) Client {
	return generatedClient[T, L, G]{in}
}

type generatedClient[T metav1.Object, L runtime.Object, G Generated[T, L]] struct {
	in func(namespace string) G
}

func (c generatedClient[T, L, G]) Get(ctx context.Context, namespace, name string) (metav1.Object, error) {
	return orNil(c.in(namespace).Get(ctx, name, metav1.GetOptions{}))
}

func (c generatedClient[T, L, G]) List(ctx context.Context, namespace string, options metav1.ListOptions) ([]metav1.Object, string, error) {
	list, err := c.in(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	page := make([]metav1.Object, 0, meta.LenList(list))
	err = meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		page = append(page, object)
		return err
	})
	return page, accessor.GetContinue(), err
}

func (c generatedClient[T, L, G]) Create(ctx context.Context, namespace string, object metav1.Object) (metav1.Object, error) {
	own, ok := object.(T)
	if !ok {
		return nil, fmt.Errorf("a %T is not of the kind of this client", object)
	}
	return orNil(c.in(namespace).Create(ctx, own, metav1.CreateOptions{}))
}

func (c generatedClient[T, L, G]) Patch(ctx context.Context, namespace, name string, kind types.PatchType, patch []byte) (metav1.Object, error) {
	return orNil(c.in(namespace).Patch(ctx, name, kind, patch, metav1.PatchOptions{}))
}

func (c generatedClient[T, L, G]) Delete(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	return c.in(namespace).Delete(ctx, name, options)
}

// orNil returns nil in place of the empty object that client-go returns together with an error.
func orNil[T metav1.Object](object T, err error) (metav1.Object, error) {
	if err != nil {
		return nil, err
	}
	return object, nil
}
