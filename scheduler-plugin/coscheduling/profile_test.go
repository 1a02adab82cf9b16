// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// configured is a profile that enables plugins at some extension points.
type configured struct {
	framework.Framework
	plugins kubeschedulerconfig.Plugins
}

func (c *configured) ListPlugins() *kubeschedulerconfig.Plugins { return &c.plugins }

func TestGapsOfAProfile(t *testing.T) {
	enabled := func(names ...string) kubeschedulerconfig.PluginSet {
		set := kubeschedulerconfig.PluginSet{}
		for _, name := range names {
			set.Enabled = append(set.Enabled, kubeschedulerconfig.Plugin{Name: name})
		}
		return set
	}
	whole := kubeschedulerconfig.Plugins{PreFilter: enabled(Name), Filter: enabled(Name), PostFilter: enabled("DefaultPreemption")}
	tests := map[string]struct {
		plugins         kubeschedulerconfig.Plugins
		ours, protected bool
		want            []string // a part of each line
	}{
		"all is well": {plugins: whole, ours: true, protected: true},
		"DefaultPreemption is under postFilter only": {plugins: whole, ours: true, want: []string{"enable DefaultPreemption under plugins.multiPoint"}},
		"so it is in a profile without the plugin": {
			plugins: kubeschedulerconfig.Plugins{PostFilter: enabled("DefaultPreemption")},
			want:    []string{"enable DefaultPreemption under plugins.multiPoint"},
		},
		"no preemption needs no protection": {plugins: kubeschedulerconfig.Plugins{PreFilter: enabled(Name), Filter: enabled(Name)}, ours: true},
		"the plugin is under preEnqueue only": {
			plugins: kubeschedulerconfig.Plugins{PreEnqueue: enabled(Name)}, ours: true, want: []string{"enable Coscheduling under plugins.multiPoint"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := gaps(&configured{plugins: tc.plugins}, tc.ours, tc.protected)
			if len(got) != len(tc.want) {
				t.Fatalf("said %q, want %d lines", got, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("said %q, want it to say %q", got[i], want)
				}
			}
		})
	}
}
