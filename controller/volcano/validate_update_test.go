// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

// TestTheCRDAndTheHashTellTheSameUpdates holds what the CRD refuses to what the hash finds.
func TestTheCRDAndTheHashTellTheSameUpdates(t *testing.T) {
	const (
		before = `{schedulerName: s, minAvailable: 2, minSuccess: 1, priorityClassName: x, runningEstimate: 1h, networkTopology: {highestTierAllowed: 1},
  plugins: {env: [], ssh: [--ssh-port=1]}, volumes: [{mountPath: /a, volumeClaimName: a}, {mountPath: /b, volumeClaim: {storageClassName: s, volumeMode: Block}}],
  policies: [{event: PodEvicted, action: RestartJob, timeout: 1s}],
  tasks: [{name: a, replicas: 2, template: {metadata: {labels: {x: w}}, spec: {containers: [{name: c, image: i, args: [x]}], nodeName: n, moon: full}}},
    {name: b, replicas: 4, minAvailable: 2, maxRetry: 2, dependsOn: {name: [a]}, topologyPolicy: none,
     partitionPolicy: {totalPartitions: 2, partitionSize: 2}, policies: [{exitCode: 1, action: AbortJob}], @t}]}`
		other = "job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
		tasks = "spec.tasks: job updates may not add or remove tasks, rename them, or change their order"
	)
	// Each pair of from is replaced by its successor.
	tests := map[string]struct {
		from []string
		want []string
		// hidden says that the CRD does not see it.
		hidden bool
	}{
		"nothing":                       {},
		"all that may":                  {from: []string{"minAvailable: 2, minSuccess", "minAvailable: 3, minSuccess", "priorityClassName: x", "priorityClassName: z", "replicas: 2, template", "replicas: 1, minAvailable: 1, template", "minAvailable: 2, maxRetry", "minAvailable: 3, maxRetry"}},
		"the order of keys":             {from: []string{"name: c, image: i, args: [x]", "args: [x], image: i, name: c"}},
		"defaults that are written out": {from: []string{"schedulerName: s,", "schedulerName: s, queue: default, maxRetry: 3,"}},
		"defaults of a schema, within":  {from: []string{"iteration: all", "iteration: all", "highestTierAllowed: 1", "highestTierAllowed: 1, mode: hard"}},

		"the scheduler":               {from: []string{"schedulerName: s", "schedulerName: t"}, want: []string{"spec.schedulerName: " + other}},
		"no scheduler":                {from: []string{"schedulerName: s, ", ""}, want: []string{"spec.schedulerName: " + other}},
		"the queue":                   {from: []string{"schedulerName: s", "schedulerName: s, queue: q"}, want: []string{"spec.queue: " + other}},
		"maxRetry":                    {from: []string{"schedulerName: s", "schedulerName: s, maxRetry: 4"}, want: []string{"spec.maxRetry: " + other}},
		"time to live":                {from: []string{"schedulerName: s", "schedulerName: s, ttlSecondsAfterFinished: 0"}, want: []string{"spec.ttlSecondsAfterFinished: " + other}},
		"minSuccess":                  {from: []string{"minSuccess: 1, ", ""}, want: []string{"spec.minSuccess: " + other}},
		"the estimate":                {from: []string{"runningEstimate: 1h", "runningEstimate: 2h"}, want: []string{"spec.runningEstimate: " + other}},
		"the topology":                {from: []string{"highestTierAllowed: 1", "highestTierAllowed: 2"}, want: []string{"spec.networkTopology: " + other}},
		"no topology":                 {from: []string{"networkTopology: {highestTierAllowed: 1},", ""}, want: []string{"spec.networkTopology: " + other}},
		"a plugin":                    {from: []string{"env: []", "env: [], svc: []"}, want: []string{"spec.plugins: " + other}},
		"a flag of a plugin":          {from: []string{"port=1", "port=2"}, want: []string{"spec.plugins: " + other}},
		"a policy of the Job":         {from: []string{"timeout: 1s", "timeout: 2s"}, want: []string{"spec.policies: " + other}},
		"no policy of the Job":        {from: []string{"policies: [{event: PodEvicted, action: RestartJob, timeout: 1s}],", ""}, want: []string{"spec.policies: " + other}},
		"a path":                      {from: []string{"mountPath: /a", "mountPath: /c"}, want: []string{"spec.volumes: " + other}},
		"a claim's name":              {from: []string{"volumeClaimName: a", "volumeClaimName: c"}, want: []string{"spec.volumes: " + other}},
		"a name of a claim beside it": {from: []string{"volumeClaim: {", "volumeClaimName: made, volumeClaim: {"}, want: []string{"spec.volumes: " + other}},
		"a claim's spec":              {from: []string{"storageClassName: s", "storageClassName: t"}, want: []string{"spec.volumes: " + other}},
		"one field of a claim in the place of another": {from: []string{"volumeMode: Block", "volumeName: v"}, want: []string{"spec.volumes: " + other}},
		"a claim in place of its name":                 {from: []string{"mountPath: /a, volumeClaimName: a", "mountPath: /a, volumeClaim: {}"}, want: []string{"spec.volumes: " + other}},
		"no volume":                                    {from: []string{"{mountPath: /a, volumeClaimName: a}, ", ""}, want: []string{"spec.volumes: " + other}},

		"a task more":            {from: []string{"]}]}", "]}, {name: c, replicas: 1, @t}]}", "@t}]}", "@t}, {name: c, replicas: 1, @t}]}"}, want: []string{tasks}},
		"a task renamed":         {from: []string{"{name: b, ", "{name: d, "}, want: []string{tasks}},
		"an image":               {from: []string{"image: i, args", "image: j, args"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"a label of a template":  {from: []string{"labels: {x: w}", "labels: {x: z}"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"one label for another":  {from: []string{"labels: {x: w}", "labels: {z: w}"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"labels for annotations": {from: []string{"labels: {x: w}", "annotations: {x: w}"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"one field of a container in the place of another":    {from: []string{"args: [x]", "command: [x]"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"one field of a Pod in the place of another":          {from: []string{"nodeName: n", "hostname: n"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"a field that nobody knows":                           {from: []string{"moon: full", "moon: new"}, want: []string{"spec.tasks: " + other + ": tasks[*].template differs"}},
		"one field that nobody knows in the place of another": {from: []string{"moon: full", "sun: full"}, hidden: true},
		"a policy of a task":                                  {from: []string{"exitCode: 1", "exitCode: 2"}, want: []string{"spec.tasks: " + other + ": tasks[*].policies differs"}},
		"a topologyPolicy":                                    {from: []string{"topologyPolicy: none", "topologyPolicy: restricted"}, want: []string{"spec.tasks: " + other + ": tasks[*].topologyPolicy differs"}},
		"maxRetry of a task":                                  {from: []string{"maxRetry: 2", "maxRetry: 1"}, want: []string{"spec.tasks: " + other + ": tasks[*].maxRetry differs"}},
		"a dependency":                                        {from: []string{"dependsOn: {name: [a]}", "dependsOn: {name: [a], iteration: any}"}, want: []string{"spec.tasks: " + other + ": tasks[*].dependsOn differs"}},
		"no dependency":                                       {from: []string{"dependsOn: {name: [a]},", ""}, want: []string{"spec.tasks: " + other + ": tasks[*].dependsOn differs"}},
		"a partition":                                         {from: []string{"totalPartitions: 2, partitionSize: 2", "totalPartitions: 1, partitionSize: 4"}, want: []string{"spec.tasks: " + other + ": tasks[*].partitionPolicy differs"}},
	}
	validator := crd.Of(t, crdOfJobs)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := objectOf(t, "", before)
			if problems := validator.Create(t, old); len(problems) > 0 {
				t.Fatalf("creating it: %v", problems)
			}
			text := strings.NewReplacer(tc.from...).Replace(before)
			if text == before && len(tc.from) > 0 {
				t.Fatal("the update changes nothing")
			}
			object := objectOf(t, "", text)
			crd.Compare(t, "the CRD", tc.want, validator.Update(t, object, runtime.DeepCopyJSON(old)))
			changed := immutableHash(&jobOf(t, object).Spec) != immutableHash(&jobOf(t, old).Spec)
			if want := len(tc.want) > 0 || tc.hidden; changed != want {
				t.Errorf("the hash has changed: %v, want %v", changed, want)
			}
		})
	}
}

// TestTheRulesOfTheCRDHaveTheTimeForTheLargestJob holds that no Job is refused because it
// takes too long to look at.
func TestTheRulesOfTheCRDHaveTheTimeForTheLargestJob(t *testing.T) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", strings.Repeat("x", 61), i)
	}
	const policies = "[{event: PodFailed, action: AbortJob}, {events: [PodEvicted, PodPending, TaskCompleted, TaskFailed], action: RestartJob}, " +
		"{exitCode: 1, action: AbortJob}, {exitCode: 2, action: AbortJob}, {exitCode: 3, action: AbortJob}, {exitCode: 4, action: AbortJob}]"
	var tasks []string
	for i, name := range names {
		depends := ""
		if i > 0 {
			depends = "dependsOn: {name: [" + strings.Join(names[max(0, i-20):i], ", ") + "]}, "
		}
		tasks = append(tasks, "{name: "+name+", replicas: 100, "+depends+"policies: "+policies+", @t}")
	}
	var volumes []string
	for i := range 32 {
		volumes = append(volumes, fmt.Sprintf("{mountPath: /%s/%d, volumeClaim: {resources: {requests: {storage: 1Gi}}}}", strings.Repeat("p", 200), i))
	}
	spec := "{plugins: {env: [], svc: [], ssh: []}, policies: " + policies + ", volumes: [" + strings.Join(volumes, ", ") + "], tasks: [" + strings.Join(tasks, ", ") + "]}"

	validator := crd.Of(t, crdOfJobs)
	old := objectOf(t, "", spec)
	if problems := validator.Create(t, old); len(problems) > 0 {
		t.Errorf("creating it: %v", crd.Texts(problems))
	}
	grown := objectOf(t, "", strings.Replace(spec, "replicas: 100", "replicas: 99", 1))
	if problems := validator.Update(t, grown, old); len(problems) > 0 {
		t.Errorf("scaling it: %v", crd.Texts(problems))
	}
	if problems := Validate(jobOf(t, old)); len(problems) > 0 {
		t.Errorf("Validate: %v", problems)
	}
	if !slices.Contains(names, effective(&jobOf(t, old).Spec).Tasks[99].Name) {
		t.Error("the last task has lost its name")
	}
}
