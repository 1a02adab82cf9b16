// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // requests, queues, informers, the election
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// metricsHandler serves the metrics of a registry, together with the metrics of Go, of the process, and of Kubernetes'
// libraries.
func metricsHandler(own prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers{own, legacyregistry.DefaultGatherer}, promhttp.HandlerOpts{})
}
