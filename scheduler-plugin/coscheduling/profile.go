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

// protectGangs has the default preemption of ordinary Pods leave alone the
// members of a gang that a Pod does not outrank. If it takes one of a gang that
// it does outrank, package gangs notices what is left (see dissolve). It says so
// where a profile is configured in a way that does not let it.
func protectGangs(ctx context.Context, sched *kube.Scheduler, all *gangs.Gangs, serves func(schedulerName string) bool) {
	guard := &gangs.Guard{Of: all}
	for name, profile := range sched.Profiles() {
		protected := kube.GuardPreemption(ctx, sched, profile, guard)
		for _, warning := range gaps(kube.EnabledIn(profile), serves(name), protected) {
			klog.FromContext(ctx).Error(nil, warning, "profile", name)
		}
	}
}

// gaps says which promises a profile breaks by the extension points that it
// leaves out. ours says that it enables the plugin, protected that its default
// preemption asks before it takes members of gangs. A plugin can be asked for
// only through the extension points that list it.
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
