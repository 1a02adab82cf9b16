// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kueue

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// silent is an API server that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestAnAPIServerThatHangsHoldsUpNoFrameworkForEver: it is tried again.
func TestAnAPIServerThatHangsHoldsUpNoFrameworkForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://silent", Transport: silent{}}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		lockstep, err := versioned.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(lockstep, client, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.queue.ShutDown()
		waiting := makeFramework(frameworkv1.FrameworkAttemptCreationPending, 2, false)
		if err := c.frameworks.GetStore().Add(waiting); err != nil {
			t.Fatal(err)
		}
		// An hour is for ever.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		err = c.sync(ctx, keyOf(waiting.Namespace, waiting.Name).ObjectName)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > pacing.RequestTime {
			t.Errorf("the sync took %v and ended with %v, want an error after %v", took, err, pacing.RequestTime)
		}
	})
}
