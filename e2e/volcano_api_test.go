//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// installVolcanoAPI has the API server serve Jobs and Commands, as is done once where Volcano
// Jobs are switched on. They stay for the tests that follow.
func installVolcanoAPI(t *testing.T) {
	t.Helper()
	if err := cluster.InstallVolcanoJobs(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// volcanoJob is the manifest of a Job. In its spec, @t stands for a good template.
func volcanoJob(name, spec string) string {
	const template = "template: {spec: {containers: [{name: c, image: i}]}}"
	return fmt.Sprintf("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: %q}\nspec: %s\n", name, strings.ReplaceAll(spec, "@t", template))
}

// TestWrongVolcanoJobsAreRefused looks for the texts that clients of Volcano match on.
func TestWrongVolcanoJobsAreRefused(t *testing.T) {
	installVolcanoAPI(t)
	const (
		pair    = "tasks: [{name: a, replicas: 2, @t}, {name: b, replicas: 2, @t}]"
		invalid = "invalid policy action"
		both    = "must not specify event and exitCode simultaneously"
		neither = "either event and exitCode should be specified"
		star    = "if there's * here, no other policy should be here"
	)
	tests := map[string]struct {
		name, spec string
		want       string
	}{
		"a name of a task twice":           {spec: "{tasks: [{name: a, replicas: 1, @t}, {name: a, replicas: 1, @t}]}", want: "duplicated task name"},
		"a minimum above all replicas":     {spec: "{minAvailable: 5, " + pair + "}", want: "job 'minAvailable' should not be greater than total replicas"},
		"a minimum above a task's":         {spec: "{tasks: [{name: a, replicas: 2, minAvailable: 3, @t}]}", want: "'minAvailable' is greater than 'replicas' in task"},
		"no tasks":                         {spec: "{tasks: []}", want: "No task specified in job spec"},
		"no list of tasks":                 {spec: "{}", want: "No task specified in job spec"},
		"a negative minimum":               {spec: "{minAvailable: -1, " + pair + "}", want: "spec.minAvailable: Invalid value"},
		"negative replicas":                {spec: "{tasks: [{name: a, replicas: -1, @t}]}", want: "spec.tasks[0].replicas: Invalid value"},
		"an unknown plugin":                {spec: "{plugins: {foo: []}, " + pair + "}", want: "unable to find job plugin"},
		"too many Pods":                    {spec: "{tasks: [{name: a, replicas: 10000, @t}, {name: b, replicas: 1, @t}]}", want: "must have at most 10000 replicas"},
		"an empty path":                    {spec: "{volumes: [{mountPath: '', volumeClaimName: a}], " + pair + "}", want: "spec.volumes[0].mountPath: Invalid value"},
		"a path twice":                     {spec: "{volumes: [{mountPath: /a, volumeClaimName: a}, {mountPath: /a, volumeClaimName: b}], " + pair + "}", want: "duplicated mountPath"},
		"neither claim nor name":           {spec: "{volumes: [{mountPath: /a}], " + pair + "}", want: "either VolumeClaim or VolumeClaimName must be specified"},
		"claim and name":                   {spec: "{volumes: [{mountPath: /a, volumeClaimName: a, volumeClaim: {}}], " + pair + "}", want: "either VolumeClaim or VolumeClaimName must be specified"},
		"a dependency on nothing":          {spec: "{tasks: [{name: a, replicas: 1, dependsOn: {name: [x]}, @t}]}", want: "dependsOn must name other tasks"},
		"a dependency on itself":           {spec: "{tasks: [{name: a, replicas: 1, dependsOn: {name: [a]}, @t}]}", want: "dependsOn must name other tasks"},
		"partitions that don't add up":     {spec: "{tasks: [{name: a, replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, @t}]}", want: "must be totalPartitions × partitionSize"},
		"two tiers":                        {spec: "{networkTopology: {highestTierAllowed: 1, highestTierName: x}, " + pair + "}", want: "simultaneously"},
		"a name with a dot":                {name: "a.b", spec: "{" + pair + "}", want: "metadata.name must be at most 63"},
		"no container":                     {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: []}}}]}", want: "spec.tasks[0].template.spec.containers"},
		"a container without a name":       {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{image: i}]}}}]}", want: "spec.tasks[0].template.spec.containers[0].name: Required value"},
		"a quantity that can't be read":    {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, resources: {limits: {cpu: much}}}]}}}]}", want: "resources.limits.cpu: Invalid value"},
		"a duration that can't be read":    {spec: "{policies: [{event: PodFailed, action: AbortJob, timeout: soon}], " + pair + "}", want: "spec.policies[0].timeout: Invalid value"},
		"a duration of thousands of years": {spec: "{policies: [{event: PodFailed, action: AbortJob, timeout: 99999999h}], " + pair + "}", want: "spec.policies[0].timeout: Invalid value"},
	}
	for what, policies := range map[string]struct{ list, want string }{
		"an event with an exit code":   {"[{event: PodFailed, exitCode: 1, action: AbortJob}]", both},
		"neither event nor exit code":  {"[{action: AbortJob}]", neither},
		"the exit code of success":     {"[{exitCode: 0, action: AbortJob}]", "0 is not a valid error code"},
		"an event in two policies":     {"[{event: PodFailed, action: AbortJob}, {events: [PodFailed], action: RestartJob}]", "duplicate"},
		"an exit code in two policies": {"[{exitCode: 2, action: AbortJob}, {exitCode: 2, action: RestartJob}]", "duplicate exitCode"},
		"* and another event":          {"[{event: '*', action: AbortJob}, {event: PodFailed, action: RestartJob}]", star},
		"an internal event":            {"[{event: OutOfSync, action: AbortJob}]", "Unsupported value"},
		"an unknown action":            {"[{event: PodFailed, action: X}]", invalid},
		"an unknown action for a code": {"[{exitCode: 2, action: X}]", invalid},
	} {
		type refusal = struct {
			name, spec string
			want       string
		}
		tests[what+", of the Job"] = refusal{spec: "{policies: " + policies.list + ", " + pair + "}", want: policies.want}
		tests[what+", of a task"] = refusal{spec: "{tasks: [{name: a, replicas: 1, policies: " + policies.list + ", @t}]}", want: policies.want}
	}
	namespace := cluster.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := tc.name
			if object == "" {
				object = "refused"
			}
			output, err := cluster.KubectlApply(t.Context(), namespace, volcanoJob(object, tc.spec))
			if err == nil || !strings.Contains(output, tc.want) {
				t.Errorf("kubectl says %q, want %q in it", output, tc.want)
			}
		})
	}
}

// TestOnlyMinimaReplicasAndTheClassOfAVolcanoJobChange does to one Job what users do.
func TestOnlyMinimaReplicasAndTheClassOfAVolcanoJobChange(t *testing.T) {
	installVolcanoAPI(t)
	namespace := cluster.Namespace(t)
	// Nobody runs it: its scheduler is none of ours.
	const before = `{schedulerName: nobodys, minAvailable: 2, policies: [{event: PodEvicted, action: RestartJob}], plugins: {env: []},
  tasks: [{name: a, replicas: 2, @t}, {name: b, replicas: 2, minAvailable: 1, @t}]}`
	if output, err := cluster.KubectlApply(t.Context(), namespace, volcanoJob("j", before)); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	const other = "job updates may not change fields other than"
	for _, tc := range []struct {
		what, old, new, want string
	}{
		{"the queue", "schedulerName", "queue: q, schedulerName", other},
		{"a plugin", "env: []", "svc: []", other},
		{"a policy", "RestartJob", "AbortJob", other},
		{"maxRetry", "schedulerName", "maxRetry: 1, schedulerName", other},
		{"time to live", "schedulerName", "ttlSecondsAfterFinished: 1, schedulerName", other},
		{"a task more", "tasks: [", "tasks: [{name: c, replicas: 1, @t}, ", "job updates may not add or remove tasks"},
		{"a task renamed", "name: b,", "name: c,", "job updates may not add or remove tasks"},
		{"the image of a template", "minAvailable: 1, @t", "minAvailable: 1, template: {spec: {containers: [{name: c, image: other}]}}", other},
		{"a minimum above all replicas", "minAvailable: 2,", "minAvailable: 5,", "job 'minAvailable' should not be greater than total replicas"},
		{"more Pods, a minimum and a class", "minAvailable: 2, policies: [{event: PodEvicted, action: RestartJob}], plugins: {env: []},\n  tasks: [{name: a, replicas: 2,",
			"minAvailable: 4, priorityClassName: high, policies: [{event: PodEvicted, action: RestartJob}], plugins: {env: []},\n  tasks: [{name: a, replicas: 4, minAvailable: 3,", ""},
	} {
		t.Run(tc.what, func(t *testing.T) {
			spec := strings.Replace(before, tc.old, tc.new, 1)
			if spec == before {
				t.Fatal("the update changes nothing")
			}
			output, err := cluster.KubectlApply(t.Context(), namespace, volcanoJob("j", spec))
			if refused := err != nil; refused != (tc.want != "") || !strings.Contains(output, tc.want) {
				t.Errorf("kubectl says %q, want %q in it", output, tc.want)
			}
		})
	}
}

// TestVolcanoJobsAreSeenByTheirShortNames: columns, names and what kubectl explains.
func TestVolcanoJobsAreSeenByTheirShortNames(t *testing.T) {
	installVolcanoAPI(t)
	namespace := cluster.Namespace(t)
	if output, err := cluster.KubectlApply(t.Context(), namespace, volcanoJob("j", "{schedulerName: nobodys, tasks: [{replicas: 1, @t}]}")); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"get vcjob -o wide", []string{"NAME STATUS MINAVAILABLE RUNNINGS AGE QUEUE", "j", "default"}},
		{"get vj j -o jsonpath={.spec.maxRetry}", []string{"3"}},
		{"get commands.bus.volcano.sh", []string{"No resources found"}},
		{"explain vcjob.spec.tasks.minAvailable", []string{"minAvailable <integer>", "must be placed with the gang"}},
	} {
		output, err := cluster.Kubectl(t.Context(), append([]string{"-n", namespace}, strings.Fields(tc.args)...)...)
		if err != nil {
			t.Errorf("kubectl %s: %v: %s", tc.args, err, output)
			continue
		}
		shown := strings.Join(strings.Fields(output), " ")
		for _, want := range tc.want {
			if !strings.Contains(shown, want) {
				t.Errorf("kubectl %s: got %q, want %q in it", tc.args, shown, want)
			}
		}
	}
}
