// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buildinfo has the metric that says which build a program is.
package buildinfo

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/version"
)

// Collector is lockstep_build_info of a program.
func Collector(program string) prometheus.Collector {
	info := version.Get()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lockstep_build_info", Help: "1, with the program, its version, and that of Go as labels.",
		ConstLabels: prometheus.Labels{"program": program, "version": info.GitVersion, "go_version": info.GoVersion},
	}, func() float64 { return 1 })
}
