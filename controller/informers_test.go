// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// TestBeginsWithTheCurrentState runs a controller on an API server that does not
// stream lists, and looks at how new a state it asks for: the empty version is the
// current one, "0" is any.
func TestBeginsWithTheCurrentState(t *testing.T) {
	var mu sync.Mutex
	versions := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
		case query.Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			mu.Lock()
			defer mu.Unlock()
			versions[path.Base(r.URL.Path)] = query.Get("resourceVersion")
			fmt.Fprint(w, emptyList(path.Base(r.URL.Path)))
		}
	}))
	defer server.Close()
	clients, err := NewClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	config := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetDefaults(config)
	controller, err := New(clients, config, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"frameworks": "", "configmaps": "", "pods": "", "podgroups": "", "priorityclasses": ""}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := controller.Run(ctx); err != nil {
			t.Errorf("running: %v", err)
		}
	})
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return controller.Ready() && len(versions) == len(want), nil // It does not wait for all of them.
	})
	cancel()
	running.Wait()
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		t.Fatalf("the controller is ready: %t, and has listed %v: %v", controller.Ready(), versions, err)
	}
	if diff := cmp.Diff(want, versions); diff != "" {
		t.Errorf("unexpected versions of first lists (-want +got):\n%s", diff)
	}
}

// emptyList is a list of no objects of a resource.
func emptyList(resource string) string {
	kinds := map[string]string{
		"frameworks":      `"FrameworkList","apiVersion":"frameworkcontroller.microsoft.com/v1"`,
		"podgroups":       `"PodGroupList","apiVersion":"scheduling.lockstep.dev/v1alpha1"`,
		"configmaps":      `"ConfigMapList","apiVersion":"v1"`,
		"pods":            `"PodList","apiVersion":"v1"`,
		"priorityclasses": `"PriorityClassList","apiVersion":"scheduling.k8s.io/v1"`,
	}
	return `{"kind":` + kinds[resource] + `,"metadata":{"resourceVersion":"1"},"items":[]}`
}
