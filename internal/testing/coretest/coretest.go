// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coretest runs cores in an engine, on an API server in memory. It is for tests of the adapters of kinds of
// jobs.
package coretest

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/client/informers/externalversions"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// Setup is what cores are made of.
type Setup struct {
	Kube     kubernetes.Interface
	Lockstep versioned.Interface
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	// PodGroups is the informer that cores share. It is started with the engine.
	PodGroups cache.SharedIndexInformer
	// Config has all defaults.
	Config *configv1alpha1.ControllerConfiguration
	Engine *engine.Engine
}

// Run runs cores until the test ends. `add` adds the cores to the engine, and returns the function that starts their
// informers.
func Run(t *testing.T, server *apiserver.Server, add func(Setup) (func(context.Context), error)) {
	t.Helper()
	config := server.Config()
	s := Setup{Config: &configv1alpha1.ControllerConfiguration{}}
	configv1alpha1.SetDefaults(s.Config)
	var errs [5]error
	s.Kube, errs[0] = kubernetes.NewForConfig(config)
	s.Lockstep, errs[1] = versioned.NewForConfig(config)
	s.Metadata, errs[2] = metadata.NewForConfig(config)
	s.Dynamic, errs[3] = dynamic.NewForConfig(config)
	s.Engine, errs[4] = engine.New(engine.Options{
		Kube: s.Kube, Metadata: s.Metadata, Workers: 2, BatchSize: 2, Registerer: prometheus.NewRegistry(),
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	factory := externalversions.NewSharedInformerFactory(s.Lockstep, 0)
	s.PodGroups = factory.Scheduling().V1alpha1().PodGroups().Informer()
	if err := s.PodGroups.AddIndexers(engine.OwnerIndex("")); err != nil {
		t.Fatal(err)
	}
	start, err := add(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	start(ctx)
	factory.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Engine.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		factory.Shutdown()
	})
}

// WantEvent checks that there is an event about an object in the namespace ns.
func WantEvent(t *testing.T, server *apiserver.Server, object, reason string) {
	t.Helper()
	for _, event := range apiserver.All[corev1.Event](server, "ns") {
		if event.InvolvedObject.Name == object && event.Reason == reason {
			return
		}
	}
	t.Errorf("the user was not told of %s, for %s", object, reason)
}

// CostsOneAWhile tests that a panic in the decision on one owner delays only that owner, and that the owner continues
// once the fault is gone. Call it in a bubble of testing/synctest. `create` creates an owner with a name in the
// namespace ns. hasPods reports whether that owner has Pods. While *faulty is true, the core must panic on the owner
// named Faulty.
func CostsOneAWhile(t *testing.T, server *apiserver.Server, faulty *bool, create func(name string), hasPods func(name string) bool) {
	t.Helper()
	create(Faulty)
	create("calm")
	time.Sleep(time.Second)
	if hasPods(Faulty) || !hasPods("calm") {
		t.Errorf("of the one that has a fault there are Pods: %t, of the other: %t", hasPods(Faulty), hasPods("calm"))
	}
	*faulty = false
	time.Sleep(pacing.MaxBackoff + time.Second)
	if !hasPods(Faulty) {
		t.Errorf("there are no Pods %v after the fault is gone", pacing.MaxBackoff)
	}
	WantEvent(t, server, Faulty, "Panicked")
}

// Faulty is the name of the owner on which decisions panic in CostsOneAWhile.
const Faulty = "faulty"
