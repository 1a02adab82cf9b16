// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// protectGangs has the default preemption of ordinary Pods leave alone the
// members of a gang that a Pod does not outrank. If it takes one of a gang that
// it does outrank, the tracker notices what is left (see dissolve). It says so
// where a profile is configured in a way that does not let it.
func (e *engine) protectGangs(logger klog.Logger) {
	for name, profile := range e.sched.Profiles() {
		protected := false
		for _, plugin := range profile.PreEnqueuePlugins() {
			if d, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
				protected = true
				e.tellPreemptors(d.Executor)
				makeGangAware(d, profile, e.tracker)
				before := d.IsEligiblePod
				d.IsEligiblePod = func(info fwk.NodeInfo, victim preemption.Victim, pod *corev1.Pod) bool {
					return before(info, victim, pod) && e.mayBeTaken(victim, pod)
				}
			}
		}
		for _, warning := range gaps(profile, e.serves(name), protected) {
			logger.Error(nil, warning, "profile", name)
		}
	}
}

// gaps says which promises a profile breaks by the extension points that it
// leaves out. ours says that it enables the plugin, protected that its default
// preemption asks before it takes members of gangs. A plugin can be asked for
// only through the extension points that list it.
func gaps(profile framework.Framework, ours, protected bool) []string {
	has := func(set kubeschedulerconfig.PluginSet, plugin string) bool {
		return slices.ContainsFunc(set.Enabled, func(p kubeschedulerconfig.Plugin) bool { return p.Name == plugin })
	}
	enabled := profile.ListPlugins()
	var warnings []string
	if has(enabled.PostFilter, defaultpreemption.Name) && !protected {
		warnings = append(warnings, "Ordinary Pods of this profile may preempt members of pod groups that they do not outrank: "+
			"enable "+defaultpreemption.Name+" under plugins.multiPoint, not under plugins.postFilter alone")
	}
	if ours && (!has(enabled.PreFilter, Name) || !has(enabled.Filter, Name)) {
		warnings = append(warnings, "Ordinary Pods of this profile may take room that is held for a pod group: "+
			"enable "+Name+" under plugins.multiPoint")
	}
	return warnings
}
