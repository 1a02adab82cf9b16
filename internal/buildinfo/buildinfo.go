// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buildinfo says which build a program is.
package buildinfo

import (
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/version"
)

// Version returns the version of Lockstep, and of the Kubernetes libraries that the program was built from, such as
// "v0.1.0 (Kubernetes v1.37.1)". All programs print it in this form.
func Version() string {
	// The linker sets KUBERNETES-lockstep.OURS: parts of Kubernetes want their own version first.
	own := version.Get().GitVersion
	if _, after, set := strings.Cut(own, "-lockstep."); set {
		own = after
	}
	return own + " (Kubernetes " + kubernetes() + ")"
}

// kubernetes returns the version of the Kubernetes libraries in this program.
func kubernetes() string {
	if info, known := debug.ReadBuildInfo(); known {
		for _, module := range info.Deps {
			// The libraries of Kubernetes 1.x have the version 0.x.
			if minor, is := strings.CutPrefix(module.Version, "v0."); is && module.Path == "k8s.io/component-base" {
				return "v1." + minor
			}
		}
	}
	return "unknown"
}

// Collector is lockstep_build_info of a program.
func Collector(program string) prometheus.Collector {
	info := version.Get()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lockstep_build_info", Help: "1, with the program, its version, and that of Go as labels.",
		ConstLabels: prometheus.Labels{"program": program, "version": info.GitVersion, "go_version": info.GoVersion},
	}, func() float64 { return 1 })
}
