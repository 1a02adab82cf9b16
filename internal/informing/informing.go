// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informing holds what the informers of both programs have in common.
package informing

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// WantCurrent makes the first list reflect every earlier write. Otherwise an informer that does not stream its list may
// start with any older state from the API server's cache, and a program that lacks its predecessor's last writes would
// repeat what they did.
func WantCurrent(options *metav1.ListOptions) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
}

// DropManagedFields is an informer's transform that removes metadata.managedFields, which no code uses, to save memory.
func DropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// Keep returns the function `keeps`, which reduces an object to what an informer caches, in two forms: as a transform
// for the informer, and as a function for objects that the owner of the cache gets in another way.
func Keep[T, K metav1.Object](keeps func(T) K) (cache.TransformFunc, func(metav1.Object) metav1.Object) {
	transform := func(object any) (any, error) {
		if o, ok := object.(T); ok {
			return keeps(o), nil
		}
		return object, nil
	}
	reduce := func(object metav1.Object) metav1.Object {
		if o, ok := object.(T); ok {
			return keeps(o)
		}
		return object
	}
	return transform, reduce
}

// Quietly keeps the informer from logging again and again that the API server does not serve the kind, until `filled`
// returns true; another part of the program logs that once. Quietly returns an error if the informer has started
// already.
func Quietly(informer cache.SharedIndexInformer, filled func() bool) error {
	complain := seldom()
	return informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) && !filled() {
			klog.FromContext(ctx).V(4).Info("Not served", "err", err)
			return
		}
		complain(ctx, reflector, err)
	})
}

// seldom returns a handler for errors of watches. seldom logs only once a minute that the informer may not read a kind,
// or that the API server does not serve the kind.
func seldom() cache.WatchErrorHandlerWithContext {
	limiter := rate.NewLimiter(rate.Every(time.Minute), 1)
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		if (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) && !limiter.Allow() {
			klog.FromContext(ctx).V(4).Info("Still not read", "err", err)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}
