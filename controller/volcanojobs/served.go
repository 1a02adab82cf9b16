// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// Informers ask again, at most half a minute apart, for resources that the API server does not serve.

// servedOrNot caches objects of an optional kind: while the API server does not serve the kind, the cache counts as
// filled.
type servedOrNot struct {
	cache.SharedIndexInformer
	absent atomic.Bool
}

// newServedOrNot makes one of an informer that was not started.
func newServedOrNot(informer cache.SharedIndexInformer) (*servedOrNot, error) {
	s := &servedOrNot{SharedIndexInformer: informer}
	return s, informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			s.absent.Store(true)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
}

// HasSynced reports whether all objects that there are are in the cache.
func (s *servedOrNot) HasSynced() bool { return s.absent.Load() || s.SharedIndexInformer.HasSynced() }
