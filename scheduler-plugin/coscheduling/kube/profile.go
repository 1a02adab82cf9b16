// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"

	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Enabled are the names of the plugins that a profile runs at some extension points.
type Enabled struct {
	PreFilter, Filter, PostFilter []string
}

// EnabledIn are the plugins that a profile runs.
func EnabledIn(profile framework.Framework) Enabled {
	plugins := profile.ListPlugins()
	return Enabled{PreFilter: namesOf(plugins.PreFilter), Filter: namesOf(plugins.Filter), PostFilter: namesOf(plugins.PostFilter)}
}

func namesOf(set kubeschedulerconfig.PluginSet) []string {
	names := make([]string, len(set.Enabled))
	for i := range set.Enabled {
		names[i] = set.Enabled[i].Name
	}
	return names
}

// Profiles are the profiles of a configuration, before a scheduler is made of it.
type Profiles []kubeschedulerconfig.KubeSchedulerProfile

// Attachable says whether some profile enables a plugin under multiPoint or preEnqueue,
// where it is found when it is attached.
func (p Profiles) Attachable(plugin string) bool {
	return slices.ContainsFunc(p, func(profile kubeschedulerconfig.KubeSchedulerProfile) bool {
		return profile.Plugins != nil && (slices.Contains(namesOf(profile.Plugins.MultiPoint), plugin) ||
			slices.Contains(namesOf(profile.Plugins.PreEnqueue), plugin))
	})
}

// DisablePreEnqueue leaves a plugin out of the extension point PreEnqueue.
func (p Profiles) DisablePreEnqueue(plugin string) {
	for i := range p {
		if plugins := p[i].Plugins; plugins != nil {
			plugins.PreEnqueue.Disabled = append(plugins.PreEnqueue.Disabled, kubeschedulerconfig.Plugin{Name: plugin})
		}
	}
}
