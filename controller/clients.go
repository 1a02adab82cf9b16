// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
)

// Clients are what the controller reads and writes with.
type Clients struct {
	// Kube reads and writes ConfigMaps, Pods and events, and reads PriorityClasses.
	Kube kubernetes.Interface
	// Lockstep reads Frameworks, writes their status, and reads and writes
	// PodGroups.
	Lockstep versioned.Interface
	// Metadata deletes Frameworks.
	Metadata metadata.Interface
}

// NewClients makes the clients of an API server. They share one rate, which is the
// QPS and the Burst of config, or its RateLimiter if it has one. A Burst of 0 or
// less sends requests one by one.
func NewClients(config *rest.Config) (Clients, error) {
	var clients Clients
	var err error
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(1, config.Burst))
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if clients.Kube, err = kubernetes.NewForConfig(core); err != nil {
		return clients, fmt.Errorf("making the Kubernetes client: %w", err)
	}
	if clients.Lockstep, err = versioned.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the Lockstep client: %w", err)
	}
	if clients.Metadata, err = metadata.NewForConfig(config); err != nil {
		return clients, fmt.Errorf("making the metadata client: %w", err)
	}
	return clients, nil
}

// once has each request sent once. A client of client-go sends a request ten times if
// the answer says when it may come again. The controller has its own back-off, which
// takes the errors of a Framework together.
type once struct {
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(request)
	if response != nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}
