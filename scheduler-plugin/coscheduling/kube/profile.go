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
	return Enabled{PreFilter: namesOf(plugins.PreFilter.Enabled), Filter: namesOf(plugins.Filter.Enabled), PostFilter: namesOf(plugins.PostFilter.Enabled)}
}

func namesOf(plugins []kubeschedulerconfig.Plugin) []string {
	names := make([]string, len(plugins))
	for i := range plugins {
		names[i] = plugins[i].Name
	}
	return names
}

// Profiles are the profiles of a configuration, before a scheduler is made of it.
type Profiles []kubeschedulerconfig.KubeSchedulerProfile

// Attachable says whether some profile runs the PreEnqueue of a plugin, where it is found when
// it is attached: it is enabled there, or under multiPoint and not disabled there.
func (p Profiles) Attachable(plugin string) bool {
	return slices.ContainsFunc(p, func(profile kubeschedulerconfig.KubeSchedulerProfile) bool {
		if profile.Plugins == nil {
			return false
		}
		here := profile.Plugins.PreEnqueue
		if slices.Contains(namesOf(here.Enabled), plugin) {
			return true
		}
		disabled := namesOf(here.Disabled)
		return slices.Contains(namesOf(profile.Plugins.MultiPoint.Enabled), plugin) &&
			!slices.Contains(disabled, plugin) && !slices.Contains(disabled, "*")
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
