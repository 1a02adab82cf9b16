// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

const crdOfJobs = "../../manifests/volcano/batch.volcano.sh_jobs.yaml"

// goodTemplate stands for a template that nothing is wrong with.
const goodTemplate = "template: {spec: {containers: [{name: c, image: i}]}}"

// TestTheCRDAndValidateRefuseTheSameJobs holds both to one table. In want, @t stands for a
// good template and is no part of what is refused.
func TestTheCRDAndValidateRefuseTheSameJobs(t *testing.T) {
	const (
		oneTask  = "{tasks: [{name: a, replicas: 4, @t}]}"
		pair     = "tasks: [{name: a, replicas: 1, @t}, {name: b, replicas: 1, @t}]"
		noAction = "invalid policy action: must be AbortJob, RestartJob, TerminateJob, CompleteJob, ResumeJob, RestartTask, RestartPod or RestartPartition"
		both     = "must not specify event and exitCode simultaneously"
		neither  = "either event and exitCode should be specified"
		codes    = "duplicate exitCode: every policy needs codes and events of its own"
		events   = "duplicate event: every policy needs codes and events of its own"
		star     = "if there's * here, no other policy should be here"
		tiers    = "must not specify highestTierAllowed and highestTierName simultaneously"
		depends  = "spec.tasks: dependsOn must name other tasks of the Job"
		circle   = "spec.tasks: dependsOn must not form a cycle"
	)
	// policies are at both places where a Job may have some.
	ofJob := func(policies string) string { return "{policies: " + policies + ", " + pair + "}" }
	ofTask := func(policies string) string {
		return "{tasks: [{name: a, replicas: 1, policies: " + policies + ", @t}]}"
	}
	tests := map[string]struct {
		name, spec string
		// want is what both find, as "field: detail", sorted.
		want []string
		// The texts of schemas are the API server's own, so only fields are compared: of
		// the CRD's, and of ours where it finds other fields.
		wantOfSchema, wantOfGo []string
	}{
		"a Job": {spec: oneTask},
		"the Job of the documentation": {spec: `{schedulerName: volcano, queue: default, minAvailable: 3, minSuccess: 2, maxRetry: 3, priorityClassName: high,
  ttlSecondsAfterFinished: 600, runningEstimate: 1h, networkTopology: {mode: hard, highestTierAllowed: 1},
  plugins: {env: [], svc: ["--disable-network-policy=true"]},
  volumes: [{mountPath: /in, volumeClaimName: existing},
    {mountPath: /out, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}],
  policies: [{event: PodEvicted, action: RestartJob}, {exitCode: 3, action: AbortJob, timeout: 30s}],
  tasks: [{name: ps, replicas: 1, @t},
    {name: worker, replicas: 4, minAvailable: 2, maxRetry: 3, dependsOn: {name: [ps], iteration: all}, topologyPolicy: best-effort,
     partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1}, policies: [{events: [TaskCompleted], action: CompleteJob}], @t}]}`},
		"a template with fields that nobody knows": {spec: `{tasks: [{name: a, replicas: 1, template: {metadata: {labels: {a: b}, moods: [good]},
  spec: {moon: full, containers: [{name: c, image: i, stars: 3, resources: {limits: {cpu: 1, memory: 1.5Gi, x: 1e3, y: 100m, z: "-.5k"}}}]}}}]}`},

		"no tasks":             {spec: "{tasks: []}", want: []string{"spec: No task specified in job spec: at least one is needed"}},
		"no list of tasks":     {spec: "{}", want: []string{"spec: No task specified in job spec: at least one is needed"}},
		"a name twice":         {spec: "{tasks: [{name: a, replicas: 1, @t}, {name: b, replicas: 1, @t}, {name: a, replicas: 1, @t}]}", want: []string{"spec.tasks: duplicated task name: every task needs a name of its own"}},
		"two tasks unnamed":    {spec: "{tasks: [{replicas: 1, @t}, {replicas: 1, @t}]}"},
		"two names of nothing": {spec: `{tasks: [{name: "", replicas: 1, @t}, {name: "", replicas: 1, @t}]}`},
		"a name like the default of another": {
			spec:     "{tasks: [{replicas: 1, @t}, {name: default0, replicas: 1, @t}]}",
			wantOfGo: []string{"spec.tasks: duplicated task name: every task needs a name of its own"},
		},
		"a minimum above all replicas": {spec: "{minAvailable: 5, tasks: [{name: a, replicas: 4, @t}]}",
			want: []string{"spec.minAvailable: job 'minAvailable' should not be greater than total replicas in tasks"}},
		"a minimum of all replicas": {spec: "{minAvailable: 4, tasks: [{name: a, replicas: 3, @t}, {name: b, replicas: 1, @t}]}"},
		"a minimum of no replicas":  {spec: "{minAvailable: 0, tasks: [{name: a, minAvailable: 0, @t}]}"},
		"a minimum of a task above its replicas": {spec: "{tasks: [{name: a, replicas: 2, minAvailable: 3, @t}]}",
			want: []string{"spec.tasks[0].minAvailable: 'minAvailable' is greater than 'replicas' in task"}},
		"as many Pods as there may be": {spec: "{tasks: [{name: a, replicas: 9999, @t}, {name: b, replicas: 1, @t}]}"},
		"a task too many":              {spec: "{tasks: [" + times(101, "{name: t%d, replicas: 1, @t}") + "]}", wantOfSchema: []string{"spec.tasks"}},
		"a policy too many":            {spec: ofJob("[" + times(17, "{exitCode: 1%d, action: AbortJob}") + "]"), wantOfSchema: []string{"spec.policies"}},
		"an event too many":            {spec: ofTask("[{events: [" + times(9, "PodFailed") + "], action: AbortJob}]"), wantOfSchema: []string{"spec.tasks[0].policies[0].events"}},
		"a volume too many":            {spec: "{volumes: [" + times(33, "{mountPath: /%d, volumeClaimName: a}") + "], " + pair + "}", wantOfSchema: []string{"spec.volumes"}},
		"a path that is too long": {spec: "{volumes: [{mountPath: /" + strings.Repeat("x", 4096) + ", volumeClaimName: a}], " + pair + "}",
			wantOfSchema: []string{"spec.volumes[0].mountPath"}},
		"a claim's name that is too long": {spec: "{volumes: [{mountPath: /a, volumeClaimName: " + strings.Repeat("x", 254) + "}], " + pair + "}",
			wantOfSchema: []string{"spec.volumes[0].volumeClaimName"}},
		"plugins without end": {spec: "{plugins: {" + times(17, "p%d: []") + "}, " + pair + "}", wantOfSchema: []string{"spec.plugins"}},
		"a flag too many": {spec: "{plugins: {env: [" + times(33, "-a") + "]}, " + pair + "}",
			wantOfSchema: []string{"spec.plugins.env"}, wantOfGo: []string{"spec.plugins[env]"}},
		"a flag that is too long": {spec: "{plugins: {env: [-" + strings.Repeat("x", 16384) + "]}, " + pair + "}",
			wantOfSchema: []string{"spec.plugins.env[0]"}, wantOfGo: []string{"spec.plugins[env][0]"}},
		"a dependency too many": {spec: "{tasks: [{name: a, replicas: 1, @t}, {name: b, replicas: 1, dependsOn: {name: [" + times(101, "a") + "]}, @t}]}",
			wantOfSchema: []string{"spec.tasks[1].dependsOn.name"}},
		"a name of a tier that is too long": {spec: "{networkTopology: {highestTierName: " + strings.Repeat("x", 254) + "}, " + pair + "}",
			wantOfSchema: []string{"spec.networkTopology.highestTierName"}},
		"a span of time that is too long": {spec: "{runningEstimate: " + strings.Repeat("0", 64) + "1s, " + pair + "}", wantOfSchema: []string{"spec.runningEstimate"}},
		"one Pod too many": {spec: "{tasks: [{name: a, replicas: 10000, @t}, {name: b, replicas: 1, @t}]}",
			want: []string{"spec.tasks: must have at most 10000 replicas, which is their sum over all tasks"}},

		"negative numbers": {
			spec:         "{minAvailable: -1, maxRetry: -1, ttlSecondsAfterFinished: -1, minSuccess: 0, tasks: [{name: a, replicas: -1, maxRetry: -1, @t}]}",
			wantOfSchema: []string{"spec.maxRetry", "spec.minAvailable", "spec.minSuccess", "spec.tasks[0].maxRetry", "spec.tasks[0].replicas", "spec.ttlSecondsAfterFinished"},
		},
		"a negative minimum of a task": {spec: "{tasks: [{name: a, replicas: 1, minAvailable: -1, @t}]}", wantOfSchema: []string{"spec.tasks[0].minAvailable"}},
		"names that are none": {
			spec:         "{queue: a_b, priorityClassName: A, tasks: [{name: a.b, replicas: 1, @t}]}",
			wantOfSchema: []string{"spec.priorityClassName", "spec.queue", "spec.tasks[0].name"},
		},
		"a name of 64 characters": {spec: "{tasks: [{name: " + strings.Repeat("x", 64) + ", replicas: 1, @t}]}", wantOfSchema: []string{"spec.tasks[0].name"}},
		"words that nobody knows": {
			spec:         "{networkTopology: {mode: loose}, tasks: [{name: a, replicas: 1, topologyPolicy: tight, @t}]}",
			wantOfSchema: []string{"spec.networkTopology.mode", "spec.tasks[0].topologyPolicy"},
		},
		"a wish for some of the tasks": {
			spec:         "{tasks: [{name: a, replicas: 1, @t}, {name: b, replicas: 1, dependsOn: {name: [a], iteration: most}, @t}]}",
			wantOfSchema: []string{"spec.tasks[1].dependsOn.iteration"},
		},
		"a duration that is none":          {spec: ofJob("[{event: PodFailed, action: AbortJob, timeout: soon}]"), wantOfSchema: []string{"spec.policies[0].timeout"}},
		"a duration without a unit":        {spec: ofJob("[{event: PodFailed, action: AbortJob, timeout: '3'}]"), wantOfSchema: []string{"spec.policies[0].timeout"}},
		"a negative duration":              {spec: ofJob("[{event: PodFailed, action: AbortJob, timeout: -3s}]"), wantOfSchema: []string{"spec.policies[0].timeout"}},
		"a duration of thousands of years": {spec: ofJob("[{event: PodFailed, action: AbortJob, timeout: 99999999h}]"), wantOfSchema: []string{"spec.policies[0].timeout"}},
		"durations":                        {spec: "{runningEstimate: 1h30m, policies: [{event: PodFailed, action: AbortJob, timeout: 1.5h2m3s4ms}, {event: Unknown, action: AbortJob, timeout: '0'}], " + pair + "}"},

		"an event that nobody knows":                 {spec: ofJob("[{event: PodBored, action: AbortJob}]"), wantOfSchema: []string{"spec.policies[0].event"}},
		"an internal event":                          {spec: ofJob("[{event: OutOfSync, action: AbortJob}]"), wantOfSchema: []string{"spec.policies[0].event"}},
		"an internal event among others":             {spec: ofTask("[{events: [PodFailed, CommandIssued], action: AbortJob}]"), wantOfSchema: []string{"spec.tasks[0].policies[0].events[1]"}},
		"an action that nobody knows":                {spec: ofJob("[{event: PodFailed, action: X}]"), want: []string{"spec.policies[0]: " + noAction}},
		"an exit code with such an action":           {spec: ofTask("[{exitCode: 1, action: X}]"), want: []string{"spec.tasks[0].policies[0]: " + noAction}},
		"no action":                                  {spec: ofTask("[{event: PodFailed}]"), want: []string{"spec.tasks[0].policies[0]: " + noAction}},
		"an event and an exit code":                  {spec: ofJob("[{event: PodFailed, exitCode: 1, action: AbortJob}]"), want: []string{"spec.policies[0]: " + both}},
		"events and an exit code":                    {spec: ofTask("[{events: [PodFailed], exitCode: 1, action: AbortJob}]"), want: []string{"spec.tasks[0].policies[0]: " + both}},
		"neither event nor exit code":                {spec: ofJob("[{action: AbortJob}]"), want: []string{"spec.policies[0]: " + neither}},
		"no event in the list":                       {spec: ofTask("[{events: [], action: AbortJob}]"), want: []string{"spec.tasks[0].policies[0]: " + neither}},
		"the exit code of success":                   {spec: ofJob("[{exitCode: 0, action: AbortJob}]"), want: []string{"spec.policies[0].exitCode: 0 is not a valid error code"}},
		"an exit code twice":                         {spec: ofJob("[{exitCode: 3, action: AbortJob}, {exitCode: 3, action: RestartJob}]"), want: []string{"spec.policies: " + codes}},
		"an exit code twice, in a task":              {spec: ofTask("[{exitCode: 3, action: AbortJob}, {exitCode: 3, action: RestartJob}]"), want: []string{"spec.tasks[0].policies: " + codes}},
		"an event in two policies":                   {spec: ofJob("[{event: PodFailed, action: AbortJob}, {events: [PodEvicted, PodFailed], action: RestartJob}]"), want: []string{"spec.policies: " + events}},
		"an event in two policies of a task":         {spec: ofTask("[{event: PodFailed, action: AbortJob}, {event: PodFailed, action: RestartJob}]"), want: []string{"spec.tasks[0].policies: " + events}},
		"an event twice in one policy":               {spec: ofJob("[{event: PodFailed, events: [PodFailed, PodFailed], action: AbortJob}]")},
		"all events and one more":                    {spec: ofJob("[{event: '*', action: AbortJob}, {event: PodFailed, action: RestartJob}]"), want: []string{"spec.policies: " + star}},
		"all events and one more in the same policy": {spec: ofTask("[{events: ['*', PodFailed], action: AbortJob}]"), want: []string{"spec.tasks[0].policies: " + star}},
		"all events and an exit code":                {spec: ofJob("[{event: '*', action: AbortJob}, {exitCode: 3, action: RestartJob}]")},

		"no path":             {spec: "{volumes: [{mountPath: '', volumeClaimName: a}], " + pair + "}", wantOfSchema: []string{"spec.volumes[0].mountPath"}},
		"a path with a colon": {spec: "{volumes: [{mountPath: 'c:/a', volumeClaimName: a}], " + pair + "}", wantOfSchema: []string{"spec.volumes[0].mountPath"}},
		"a path twice":        {spec: "{volumes: [{mountPath: /a, volumeClaimName: a}, {mountPath: /a, volumeClaimName: b}], " + pair + "}", want: []string{"spec.volumes: duplicated mountPath: every volume needs a path of its own"}},
		"a volume of nothing": {spec: "{volumes: [{mountPath: /a}], " + pair + "}", want: []string{"spec.volumes[0]: either VolumeClaim or VolumeClaimName must be specified"}},
		"a volume of two things": {
			spec:         "{volumes: [{mountPath: /a, volumeClaimName: a, volumeClaim: {}}], " + pair + "}",
			wantOfSchema: []string{"spec.volumes"}, wantOfGo: []string{}, // Volcano's controller writes that.
		},
		"one claim at two paths": {spec: "{volumes: [{mountPath: /a, volumeClaimName: a}, {mountPath: /b, volumeClaimName: a}], " + pair + "}"},
		"a claim of a size that is none": {
			spec:         "{volumes: [{mountPath: /a, volumeClaim: {resources: {requests: {storage: much}}}}], " + pair + "}",
			wantOfSchema: []string{"spec.volumes[0].volumeClaim.resources.requests.storage"}, wantOfGo: []string{"spec.volumes[0].volumeClaim"},
		},

		"a plugin that nobody knows": {spec: "{plugins: {foo: []}, " + pair + "}", want: []string{"spec.plugins: unable to find job plugin: there are env, svc, ssh, tensorflow, pytorch, mpi, ray and hcclrank"}},
		"mpi without its master": {spec: "{plugins: {mpi: [--master=m]}, " + pair + "}",
			wantOfGo: []string{"spec.plugins[mpi]: must have the task that the plugin needs"}},
		"mpi with its master": {spec: "{plugins: {mpi: [-master, b]}, " + pair + "}"},
		"ray without its head": {spec: "{plugins: {ray: []}, " + pair + "}",
			wantOfGo: []string{"spec.plugins[ray]: must have the task that the plugin needs"}},
		"pytorch without its master": {spec: "{plugins: {pytorch: []}, " + pair + "}"},

		"partitions that don't fill the task": {spec: "{tasks: [{name: a, replicas: 5, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, @t}]}",
			want: []string{"spec.tasks[0].replicas: must be totalPartitions × partitionSize of the partitionPolicy"}},
		"a minimum of partitions and another of the task": {spec: "{tasks: [{name: a, replicas: 4, minAvailable: 3, partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1}, @t}]}",
			want: []string{"spec.tasks[0].minAvailable: must be minPartitions × partitionSize of the partitionPolicy, or absent"}},
		"a minimum of partitions and the same of the task": {spec: "{tasks: [{name: a, replicas: 4, minAvailable: 2, partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1}, @t}]}"},
		"more partitions needed than there are": {spec: "{tasks: [{name: a, replicas: 4, partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 3}, @t}]}",
			want: []string{"spec.tasks[0].partitionPolicy.minPartitions: must be at most totalPartitions"}},
		"partitions of nothing": {spec: "{tasks: [{name: a, partitionPolicy: {totalPartitions: 0, partitionSize: 0, minPartitions: -1}, @t}]}",
			wantOfSchema: []string{"spec.tasks[0].partitionPolicy.minPartitions", "spec.tasks[0].partitionPolicy.partitionSize", "spec.tasks[0].partitionPolicy.totalPartitions"}},
		"two tiers": {spec: "{networkTopology: {highestTierAllowed: 1, highestTierName: rack}, " + pair + "}", want: []string{"spec.networkTopology: " + tiers}},
		"two tiers of a partition": {spec: "{tasks: [{name: a, replicas: 4, partitionPolicy: {totalPartitions: 2, partitionSize: 2, networkTopology: {highestTierAllowed: 1, highestTierName: rack}}, @t}]}",
			want: []string{"spec.tasks[0].partitionPolicy.networkTopology: " + tiers}},

		"a dependency on an unknown task":           {spec: "{tasks: [{name: a, replicas: 1, @t}, {name: b, replicas: 1, dependsOn: {name: [a, c]}, @t}]}", want: []string{depends}},
		"a dependency on itself":                    {spec: "{tasks: [{name: a, replicas: 1, dependsOn: {name: [a]}, @t}]}", want: []string{depends}},
		"a dependency on an unnamed task":           {spec: "{tasks: [{replicas: 1, @t}, {replicas: 1, dependsOn: {name: [default0]}, @t}]}"},
		"a dependency on a later task":              {spec: "{tasks: [{name: a, replicas: 1, dependsOn: {name: [default1]}, @t}, {replicas: 1, @t}]}"},
		"a dependency on a named task by its place": {spec: "{tasks: [{name: a, replicas: 1, @t}, {replicas: 1, dependsOn: {name: [default0]}, @t}]}", want: []string{depends}},
		"a dependency on a place that is not there": {spec: "{tasks: [{replicas: 1, dependsOn: {name: [default1]}, @t}]}", want: []string{depends}},
		"a dependency of an unnamed task on itself": {spec: "{tasks: [{replicas: 1, dependsOn: {name: [default0]}, @t}]}", wantOfGo: []string{depends}},
		"a circle of three": {
			spec:     "{tasks: [{name: a, replicas: 1, dependsOn: {name: [c]}, @t}, {name: b, replicas: 1, dependsOn: {name: [a]}, @t}, {name: c, replicas: 1, dependsOn: {name: [b]}, @t}]}",
			wantOfGo: []string{circle},
		},
		"a diamond": {spec: "{tasks: [{name: d, replicas: 1, dependsOn: {name: [b, c]}, @t}, {name: b, replicas: 1, dependsOn: {name: [a]}, @t}, {name: c, replicas: 1, dependsOn: {name: [a]}, @t}, {name: a, replicas: 1, @t}]}"},

		"a name with a dot":               {name: "a.b", spec: oneTask, want: []string{wrongName}},
		"a name of the Job of 64 letters": {name: strings.Repeat("x", 64), spec: oneTask, want: []string{wrongName}},
		"the longest name":                {name: strings.Repeat("x", 63), spec: oneTask},

		"no template":       {spec: "{tasks: [{name: a, replicas: 1}]}", wantOfSchema: []string{"spec.tasks[0].template"}},
		"no containers":     {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: []}}}]}", wantOfSchema: []string{"spec.tasks[0].template.spec.containers"}, wantOfGo: []string{"spec.tasks[0].template"}},
		"an empty template": {spec: "{tasks: [{name: a, replicas: 1, template: {}}]}", wantOfSchema: []string{"spec.tasks[0].template.spec"}, wantOfGo: []string{"spec.tasks[0].template"}},
		"a nameless container": {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{image: i}]}}}]}",
			wantOfSchema: []string{"spec.tasks[0].template.spec.containers[0].name"}, wantOfGo: []string{"spec.tasks[0].template"}},
		"a quantity that is none": {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1e5x}}}]}}}]}",
			wantOfSchema: []string{"spec.tasks[0].template.spec.containers[0].resources.limits.cpu"}, wantOfGo: []string{"spec.tasks[0].template"}},
		"a quantity that would be read for ever": {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, resources: {limits: {cpu: 1.0000000000000000001e2000000000}}}]}}}]}",
			wantOfSchema: []string{"spec.tasks[0].template.spec.containers[0].resources.limits.cpu"}, wantOfGo: []string{"spec.tasks[0].template"}},
		"a size that would be read for ever": {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c}], volumes: [{name: v, emptyDir: {sizeLimit: 1.0000000000000000001e2000000000}}]}}}]}",
			wantOfGo: []string{"spec.tasks[0].template"}},
		"a template that takes long to read": {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, args: [" + times(20_001, "a") + "]}]}}}]}",
			wantOfGo: []string{"spec.tasks[0].template"}},
		"a number where a text belongs": {spec: "{tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, env: [{name: a, value: 1}]}]}}}]}",
			wantOfGo: []string{"spec.tasks[0].template"}},
	}
	validator := crd.Of(t, crdOfJobs)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			wantOfGo := tc.wantOfGo
			if wantOfGo == nil {
				wantOfGo = append(slices.Clone(tc.want), tc.wantOfSchema...)
			}
			object := objectOf(t, tc.name, tc.spec)
			crd.Compare(t, "the CRD", append(slices.Clone(tc.want), tc.wantOfSchema...), validator.Create(t, runtime.DeepCopyJSON(object)))
			crd.Compare(t, "Validate", wantOfGo, Validate(jobOf(t, object)))
		})
	}
}

const wrongName = "metadata.name: metadata.name must be at most 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit, because it is a label value and a part of host names"

// times repeats a text of a list, with the place in it for %d.
func times(n int, text string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strings.ReplaceAll(text, "%d", fmt.Sprint(i))
	}
	return strings.Join(texts, ", ")
}

// objectOf is a Job as the API server gets it.
func objectOf(t *testing.T, name, spec string) map[string]any {
	t.Helper()
	if name == "" {
		name = "j"
	}
	manifest := fmt.Sprintf("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec: %s\n", name, strings.ReplaceAll(spec, "@t", goodTemplate))
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// jobOf is a Job as our clients read it.
func jobOf(t *testing.T, object map[string]any) *batchv1alpha1.Job {
	t.Helper()
	data, err := utiljson.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1alpha1.Job{}
	if err := utiljson.Unmarshal(data, job); err != nil {
		t.Fatal(err)
	}
	return job
}

// TestASpecWithoutBoundsIsRefusedAtOnce has as many tasks as fit into an object, each of which
// depends on the next. Only the CRD of somebody else lets that in.
func TestASpecWithoutBoundsIsRefusedAtOnce(t *testing.T) {
	job := &batchv1alpha1.Job{}
	job.Name = "j"
	for i := range 30_000 {
		job.Spec.Tasks = append(job.Spec.Tasks, batchv1alpha1.TaskSpec{DependsOn: &batchv1alpha1.DependsOn{Name: []string{defaultTaskName(i + 1)}}})
	}
	if errs := Validate(job); len(errs) != 1 || errs[0].Field != "spec.tasks" {
		t.Errorf("%d problems, want one, of spec.tasks", len(errs))
	}
	memory := Memory{}.read(job, "", Options{SchedulerNames: []string{""}})
	if n := len(memory.invalid); n == 0 || n > plan.MaxMessage {
		t.Errorf("%d bytes say what is wrong, want at most %d", n, plan.MaxMessage)
	}
}
