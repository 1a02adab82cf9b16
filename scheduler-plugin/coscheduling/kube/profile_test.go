// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func TestAPluginIsAttachableWhereAProfileRunsItsPreEnqueue(t *testing.T) {
	profiles := Profiles{{SchedulerName: "a"}, {SchedulerName: "b", Plugins: &kubeschedulerconfig.Plugins{}}}
	if profiles.Attachable("Plugin") {
		t.Error("a plugin that no profile enables is attachable")
	}
	set := kubeschedulerconfig.PluginSet{Enabled: []kubeschedulerconfig.Plugin{{Name: "Plugin"}}}
	for point, plugins := range map[string]kubeschedulerconfig.Plugins{"multiPoint": {MultiPoint: set}, "preEnqueue": {PreEnqueue: set}} {
		*profiles[1].Plugins = plugins
		if !profiles.Attachable("Plugin") {
			t.Errorf("a plugin under %s is not attachable", point)
		}
	}
	*profiles[1].Plugins = kubeschedulerconfig.Plugins{Filter: set}
	if profiles.Attachable("Plugin") {
		t.Error("a plugin under filter alone is attachable")
	}
}
