// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"slices"

	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

var _ kube.Gangs = &gangs.Guard{}

// protectGangs makes the default preemption of ordinary Pods spare members of gangs that the preemptor does not
// outrank. If an ordinary Pod preempts a member of another gang, package gangs dissolves the rest. If the configuration
// of a profile prevents this, the log has a warning.
func protectGangs(ctx context.Context, sched *kube.Scheduler, all *gangs.Gangs, serves func(schedulerName string) bool) {
	guard := &gangs.Guard{Of: all}
	for name, profile := range sched.Profiles() {
		protected := kube.GuardPreemption(ctx, sched, profile, guard)
		for _, warning := range gaps(kube.EnabledIn(profile), serves(name), protected) {
			klog.FromContext(ctx).Error(nil, warning, "profile", name)
		}
	}
}

// gaps returns a warning for each guarantee that does not hold in a profile, because the profile leaves out extension
// points. ours reports whether the profile enables the plugin. protected reports whether the profile's default
// preemption asks before it preempts members of gangs.
func gaps(enabled kube.Enabled, ours, protected bool) []string {
	var warnings []string
	if slices.Contains(enabled.PostFilter, kube.DefaultPreemption) && !protected {
		warnings = append(warnings, "Ordinary Pods of this profile may preempt members of pod groups that they do not outrank: "+
			"enable "+kube.DefaultPreemption+" under plugins.multiPoint, not under plugins.postFilter alone")
	}
	if ours && (!slices.Contains(enabled.PreFilter, Name) || !slices.Contains(enabled.Filter, Name)) {
		warnings = append(warnings, "Ordinary Pods of this profile may take resources that are reserved for a pod group: "+
			"enable "+Name+" under plugins.multiPoint")
	}
	return warnings
}
