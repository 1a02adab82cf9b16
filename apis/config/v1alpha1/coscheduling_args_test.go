// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestDecodeCoschedulingArgs(t *testing.T) {
	defaults := func(change func(*CoschedulingArgs)) *CoschedulingArgs {
		args := &CoschedulingArgs{
			InitialBackoff:  &metav1.Duration{Duration: time.Second},
			MaxBackoff:      &metav1.Duration{Duration: 10 * time.Second},
			CycleTimeout:    &metav1.Duration{Duration: 2 * time.Second},
			BindParallelism: ptr.To[int32](64),
			BindRetries:     ptr.To[int32](3),
			PodGroupAPIs: PodGroupAPIs{
				SchedulerPlugins: SchedulerPluginsAPI{Mode: PodGroupAPIAuto},
				Native:           NativeAPI{Mode: PodGroupAPIAuto},
				Volcano:          VolcanoAPI{Mode: PodGroupAPIAuto, Claim: ClaimAll, UnlinkedPods: UnlinkedSchedule},
			},
			Backfill:       Backfill{Estimates: ptr.To(true), PreemptOverrun: ptr.To(false)},
			Preemption:     Preemption{MinRuntimeSeconds: ptr.To[int32](0)},
			ExpectedStarts: ExpectedStarts{Interval: &metav1.Duration{Duration: time.Minute}},
			Reservations: Reservations{MaxPercent: ptr.To[int32](50), IdlePercent: ptr.To[int32](2),
				MembersToCome: MembersToCome{Timeout: &metav1.Duration{Duration: 10 * time.Minute}, NamespaceMaxPercent: ptr.To[int32](50), Preemption: ptr.To(false)}},
		}
		change(args)
		return args
	}
	tests := map[string]struct {
		obj     runtime.Object
		want    *CoschedulingArgs
		wantErr string
	}{
		"no arguments are the defaults": {
			obj:  nil,
			want: defaults(func(*CoschedulingArgs) {}),
		},
		"JSON is read and the rest filled in": {
			obj: &runtime.Unknown{Raw: []byte(`{"bindRetries":0,"initialBackoff":"250ms"}`)},
			want: defaults(func(a *CoschedulingArgs) {
				a.BindRetries = ptr.To[int32](0)
				a.InitialBackoff.Duration = 250 * time.Millisecond
			}),
		},
		"a long initial back-off raises the default of the longest": {
			obj: &runtime.Unknown{Raw: []byte(`{"initialBackoff":"1m"}`)},
			want: defaults(func(a *CoschedulingArgs) {
				a.InitialBackoff.Duration = time.Minute
				a.MaxBackoff.Duration = time.Minute
			}),
		},
		"an unknown field is named": {
			obj:     &runtime.Unknown{Raw: []byte(`{"permitWaitingTime":"1m"}`)},
			wantErr: `unknown field "permitWaitingTime"`,
		},
		"too many binds at once": {
			obj:     &runtime.Unknown{Raw: []byte(`{"bindParallelism":1001}`)},
			wantErr: "bindParallelism: Invalid value: 1001: must be from 1 to 1000",
		},
		"a longest back-off below the initial one": {
			obj:     &runtime.Unknown{Raw: []byte(`{"initialBackoff":"5s","maxBackoff":"2s"}`)},
			wantErr: `maxBackoff: Invalid value: "2s": must be from 5s to 1h0m0s`,
		},
		"a field that is no more": {
			obj:     &runtime.Unknown{Raw: []byte(`{"starvationAfter":"5m"}`)},
			wantErr: "starvationAfter is not a field any more: the first group that waits has room reserved at once, which other work uses as backfill says; reservations.maxPercent: 0 reserves none",
		},
		"a field of another name": {
			obj:     &runtime.Unknown{Raw: []byte(`{"turnTimeout":"1s"}`)},
			wantErr: "turnTimeout is now cycleTimeout",
		},
		"a cycle without a bound": {
			obj:     &runtime.Unknown{Raw: []byte(`{"cycleTimeout":"0s"}`)},
			wantErr: `cycleTimeout: Invalid value: "0s": must be from 100ms to 1m0s`,
		},
		"an API that is switched off": {
			obj:  &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"schedulerPlugins":{"mode":"Off"}}}`)},
			want: defaults(func(a *CoschedulingArgs) { a.PodGroupAPIs.SchedulerPlugins.Mode = PodGroupAPIOff }),
		},
		"an unknown mode of an API": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"schedulerPlugins":{"mode":"Sometimes"}}}`)},
			wantErr: `podGroupAPIs.schedulerPlugins.mode: Unsupported value: "Sometimes": supported values: "Auto", "On", "Off"`,
		},
		"a mode of Kubernetes' own that there is not": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"native":{"mode":"Yes"}}}`)},
			wantErr: `podGroupAPIs.native.mode: Unsupported value: "Yes": supported values: "Auto", "On", "Off"`,
		},
		"rules by which Pods are gangs": {
			obj:  &runtime.Unknown{Raw: []byte(`{"groupingRules":["KueuePods","Jobs"]}`)},
			want: defaults(func(a *CoschedulingArgs) { a.GroupingRules = []GroupingRule{RuleKueuePods, RuleJobs} }),
		},
		"a rule that there is not": {
			obj:     &runtime.Unknown{Raw: []byte(`{"groupingRules":["Jobs","CronJobs"]}`)},
			wantErr: `groupingRules[1]: Unsupported value: "CronJobs": supported values: "Annotations", "KueuePods", "MinAvailable", "JobSets", "LeaderWorkerSets", "Jobs"`,
		},
		"a rule that is there twice": {
			obj:     &runtime.Unknown{Raw: []byte(`{"groupingRules":["Jobs","Jobs"]}`)},
			wantErr: `groupingRules[1]: Duplicate value: "Jobs"`,
		},
		"the gate of Volcano's groups, which there is no more": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"admit":"WhenRoom"}}}`)},
			wantErr: `unknown field "admit"`,
		},
		"a mode of Volcano's that there is not": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"mode":"on"}}}`)},
			wantErr: `podGroupAPIs.volcano.mode: Unsupported value: "on": supported values: "Auto", "On", "Off"`,
		},
		"a claim that there is not": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"claim":"Some"}}}`)},
			wantErr: `podGroupAPIs.volcano.claim: Unsupported value: "Some": supported values: "All", "None"`,
		},
		"tiers of a network": {
			obj: &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"unlinkedPods":"Wait","tiers":[{"tier":1,"key":"topology.kubernetes.io/rack"},{"tier":2,"name":"spine","key":"spine"}]}}}`)},
			want: defaults(func(a *CoschedulingArgs) {
				a.PodGroupAPIs.Volcano.UnlinkedPods = UnlinkedWait
				a.PodGroupAPIs.Volcano.Tiers = []Tier{{Tier: 1, Key: "topology.kubernetes.io/rack"}, {Tier: 2, Name: "spine", Key: "spine"}}
			}),
		},
		"a tier without a label": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"tiers":[{"tier":1}]}}}`)},
			wantErr: `podGroupAPIs.volcano.tiers[0].key: Invalid value: ""`,
		},
		"a tier below all": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"tiers":[{"tier":-1,"key":"rack"}]}}}`)},
			wantErr: "podGroupAPIs.volcano.tiers[0].tier: Invalid value: -1: must be at least 0",
		},
		"two tiers of a number": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"tiers":[{"tier":1,"key":"a"},{"tier":1,"key":"b"}]}}}`)},
			wantErr: "podGroupAPIs.volcano.tiers[1].tier: Duplicate value: 1",
		},
		"two tiers of a name": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"tiers":[{"tier":1,"name":"a","key":"a"},{"tier":2,"name":"a","key":"b"}]}}}`)},
			wantErr: `podGroupAPIs.volcano.tiers[1].name: Duplicate value: "a"`,
		},
		"more tiers than any network has": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"tiers":[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}}}`)},
			wantErr: "podGroupAPIs.volcano.tiers: Too many: 17",
		},
		"Pods without a group that do something else": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"volcano":{"unlinkedPods":"Reject"}}}`)},
			wantErr: `podGroupAPIs.volcano.unlinkedPods: Unsupported value: "Reject": supported values: "Schedule", "Wait"`,
		},
		"an unknown API": {
			obj:     &runtime.Unknown{Raw: []byte(`{"podGroupAPIs":{"koordinator":{"mode":"On"}}}`)},
			wantErr: `unknown field "koordinator"`,
		},
		"room is kept for members to come": {
			obj: &runtime.Unknown{Raw: []byte(`{"reservations":{"maxPercent":0,"membersToCome":{"namespaces":["team-a","*"],"timeout":"0s","namespaceMaxPercent":100,"preemption":true}}}`)},
			want: defaults(func(a *CoschedulingArgs) {
				a.Reservations.MaxPercent = ptr.To[int32](0)
				r := &a.Reservations.MembersToCome
				r.Namespaces, r.Timeout.Duration, r.NamespaceMaxPercent, r.Preemption = []string{"team-a", "*"}, 0, ptr.To[int32](100), ptr.To(true)
			}),
		},
		"room is kept for too long": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"membersToCome":{"timeout":"25h"}}}`)},
			wantErr: `reservations.membersToCome.timeout: Invalid value: "25h0m0s": must be from 0s to 24h0m0s`,
		},
		"more than the cluster has is reserved for a namespace": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"membersToCome":{"namespaceMaxPercent":101}}}`)},
			wantErr: `reservations.membersToCome.namespaceMaxPercent: Invalid value: 101: must be from 1 to 100`,
		},
		"more than the cluster has is reserved in all": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"maxPercent":101}}`)},
			wantErr: `reservations.maxPercent: Invalid value: 101: must be from 0 to 100`,
		},
		"less than nothing is reserved": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"maxPercent":-1}}`)},
			wantErr: `reservations.maxPercent: Invalid value: -1: must be from 0 to 100`,
		},
		"more of the cluster is idle than there is": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"idlePercent":101}}`)},
			wantErr: `reservations.idlePercent: Invalid value: 101: must be from 1 to 100`,
		},
		"nothing is ever idle": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"idlePercent":0}}`)},
			wantErr: `reservations.idlePercent: Invalid value: 0: must be from 1 to 100`,
		},
		"a field that has another name now": {
			obj:     &runtime.Unknown{Raw: []byte(`{"dialects":{"native":{"mode":"On"}}}`)},
			wantErr: `dialects is now podGroupAPIs, dialects.rules is groupingRules, and dialects.reservation is reservations.membersToCome`,
		},
		"a namespace that can't be": {
			obj:     &runtime.Unknown{Raw: []byte(`{"reservations":{"membersToCome":{"namespaces":["a.b"]}}}`)},
			wantErr: `reservations.membersToCome.namespaces[0]: Invalid value: "a.b": must not contain dots`,
		},
		"arguments of another plugin": {
			obj:     &runtime.Unknown{Raw: []byte(`{"kind":"NodeAffinityArgs"}`)},
			wantErr: `want arguments of kind CoschedulingArgs, got "NodeAffinityArgs"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeCoschedulingArgs(tc.obj)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("arguments (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyNamespacesThatAreEnabledHaveRoomKept.
func TestOnlyNamespacesThatAreEnabledHaveRoomKept(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces []string
		want       bool
	}{
		"none":    {nil, false},
		"others":  {[]string{"b", "c"}, false},
		"this":    {[]string{"b", "a"}, true},
		"all":     {[]string{"*"}, true},
		"in part": {[]string{"a-b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := MembersToCome{Namespaces: tc.namespaces}
			if got := r.Enables("a"); got != tc.want {
				t.Errorf("enabled: %t, want %t", got, tc.want)
			}
		})
	}
}
