// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Enabled are the names of the plugins that a profile runs at some extension points.
type Enabled struct {
	PreFilter, Filter, PostFilter []string
}

// EnabledIn returns the plugins that a profile runs.
func EnabledIn(profile framework.Framework) Enabled {
	plugins := profile.ListPlugins()
	return Enabled{PreFilter: namesOf(plugins.PreFilter.Enabled), Filter: namesOf(plugins.Filter.Enabled), PostFilter: namesOf(plugins.PostFilter.Enabled)}
}

// OnlyUpstream reports whether all PreFilter plugins of a profile, except one, are kube-scheduler's own.
func OnlyUpstream(profile framework.Framework, but string) bool {
	return !slices.ContainsFunc(EnabledIn(profile).PreFilter, func(name string) bool { return name != but && !withPreFilter.Has(name) })
}

// withPreFilter are kube-scheduler's plugins with a PreFilter.
var withPreFilter = sets.New(names.NodeResourcesFit, names.NodePorts, names.NodeName, names.NodeUnschedulable, names.TaintToleration, names.DeferredPodScheduling, names.NodeAffinity, names.InterPodAffinity, names.PodTopologySpread,
	names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone, names.DynamicResources, names.NodeDeclaredFeatures)

func namesOf(plugins []kubeschedulerconfig.Plugin) []string {
	names := make([]string, len(plugins))
	for i := range plugins {
		names[i] = plugins[i].Name
	}
	return names
}

// Profiles are the profiles of a configuration from which a scheduler is to be created.
type Profiles []kubeschedulerconfig.KubeSchedulerProfile

// Attachable reports whether some profile runs a plugin at PreEnqueue, where package coscheduling looks for the plugin.
// The plugin may be enabled there, or enabled under multiPoint and not disabled there.
func (p Profiles) Attachable(plugin string) bool {
	return p.first(plugin) >= 0
}

// first returns the index of the first profile that runs a plugin at PreEnqueue, -1 if none.
func (p Profiles) first(plugin string) int {
	return slices.IndexFunc(p, func(profile kubeschedulerconfig.KubeSchedulerProfile) bool {
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

// Also returns the profiles and, for each name, a copy of the first profile that runs the plugin. The copy has that
// name, so that Pods with this schedulerName are scheduled in the same way. A name that is invalid or already has a
// profile is an error.
func (p Profiles) Also(plugin string, names []string) (Profiles, error) {
	all := slices.Clone(p)
	for _, name := range names {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return nil, fmt.Errorf("%q is no name of a scheduler: %s", name, wrong[0])
		}
		if slices.ContainsFunc(all, func(profile kubeschedulerconfig.KubeSchedulerProfile) bool { return profile.SchedulerName == name }) {
			return nil, fmt.Errorf("the scheduler name %s is served already", name)
		}
		i := all.first(plugin)
		if i < 0 {
			return nil, fmt.Errorf("no profile enables the plugin %s", plugin)
		}
		profile := all[i].DeepCopy()
		profile.SchedulerName = name
		all = append(all, *profile)
	}
	return all, nil
}

// DisablePreEnqueue removes a plugin from the extension point PreEnqueue.
func (p Profiles) DisablePreEnqueue(plugin string) {
	for i := range p {
		if plugins := p[i].Plugins; plugins != nil {
			plugins.PreEnqueue.Disabled = append(plugins.PreEnqueue.Disabled, kubeschedulerconfig.Plugin{Name: plugin})
		}
	}
}
