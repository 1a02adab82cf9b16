// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// TestWhichPodGroupAPIsAreOnIsMeasured, as they are when somebody asks, and why.
func TestWhichPodGroupAPIsAreOnIsMeasured(t *testing.T) {
	volcano := PodGroupAPI{Group: "scheduling.volcano.sh", Mode: "Auto", Reason: "no profile is named volcano"}
	none := func() map[string]int { return nil }
	registry := metrics.NewKubeRegistry()
	if _, err := NewMetrics(registry, &Asked{
		Waiting: none, Foreign: none, Reserved: func() map[Kind]float64 { return nil },
		PodGroupAPIs: func() []PodGroupAPI {
			return []PodGroupAPI{{Group: "scheduling.x-k8s.io", Mode: "On", On: true, Served: true, Reason: "served"}, volcano}
		},
	}); err != nil {
		t.Fatal(err)
	}
	const head = "# HELP lockstep_scheduler_podgroup_apis [ALPHA] 1 for each PodGroup API of another project that is served, 0 for one that is not, by its API group, the mode in the configuration and why.\n" +
		"# TYPE lockstep_scheduler_podgroup_apis gauge\n" +
		"lockstep_scheduler_podgroup_apis{group=\"scheduling.x-k8s.io\",mode=\"On\",reason=\"served\"} 1\n"
	for _, tc := range []struct {
		on, served bool
		reason     string
		want       string
	}{
		{false, false, "no profile is named volcano", `lockstep_scheduler_podgroup_apis{group="scheduling.volcano.sh",mode="Auto",reason="no profile is named volcano"} 0`},
		{true, true, "served", `lockstep_scheduler_podgroup_apis{group="scheduling.volcano.sh",mode="Auto",reason="served"} 1`},
		{true, false, "it is gone; its Pods wait", `lockstep_scheduler_podgroup_apis{group="scheduling.volcano.sh",mode="Auto",reason="it is gone; its Pods wait"} 0`},
	} {
		volcano.On, volcano.Served, volcano.Reason = tc.on, tc.served, tc.reason
		if err := testutil.GatherAndCompare(registry, strings.NewReader(head+tc.want+"\n"), "lockstep_scheduler_podgroup_apis"); err != nil {
			t.Error(err)
		}
	}
}
