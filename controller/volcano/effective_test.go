// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestWhatASpecLeavesOutHasADefault(t *testing.T) {
	tests := map[string]struct {
		given, want string
	}{
		"everything": {
			given: "{tasks: [{replicas: 2, @t}, {name: b, @t}]}",
			want: `{queue: default, maxRetry: 3, minAvailable: 2,
  tasks: [{name: default0, replicas: 2, minAvailable: 2, maxRetry: 3, @t}, {name: b, minAvailable: 0, maxRetry: 3, @t}]}`,
		},
		"nothing": {
			given: "{queue: q, maxRetry: 1, minAvailable: 1, networkTopology: {mode: soft}, tasks: [{name: a, replicas: 2, minAvailable: 0, maxRetry: 1, @t}]}",
			want:  "{queue: q, maxRetry: 1, minAvailable: 1, networkTopology: {mode: soft}, tasks: [{name: a, replicas: 2, minAvailable: 0, maxRetry: 1, @t}]}",
		},
		"zeros": {
			given: "{maxRetry: 0, minAvailable: 0, tasks: [{name: a, replicas: 4, minAvailable: 1, maxRetry: 0, @t}, {name: b, replicas: 3, @t}]}",
			want: `{queue: default, maxRetry: 3, minAvailable: 4,
  tasks: [{name: a, replicas: 4, minAvailable: 1, maxRetry: 3, @t}, {name: b, replicas: 3, minAvailable: 3, maxRetry: 3, @t}]}`,
		},
		"the minimum of partitions": {
			given: `{tasks: [{name: a, replicas: 6, partitionPolicy: {totalPartitions: 3, partitionSize: 2, minPartitions: 2}, @t},
  {name: b, replicas: 4, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, @t}]}`,
			want: `{queue: default, maxRetry: 3, minAvailable: 8,
  tasks: [{name: a, replicas: 6, minAvailable: 4, maxRetry: 3, partitionPolicy: {totalPartitions: 3, partitionSize: 2, minPartitions: 2}, @t},
  {name: b, replicas: 4, minAvailable: 4, maxRetry: 3, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, @t}]}`,
		},
		"modes": {
			given: `{networkTopology: {highestTierAllowed: 1}, tasks: [{name: a, replicas: 2, dependsOn: {name: [b]},
  partitionPolicy: {totalPartitions: 1, partitionSize: 2, networkTopology: {highestTierName: x}}, @t}, {name: b, @t}]}`,
			want: `{queue: default, maxRetry: 3, minAvailable: 2, networkTopology: {mode: hard, highestTierAllowed: 1},
  tasks: [{name: a, replicas: 2, minAvailable: 2, maxRetry: 3, dependsOn: {name: [b], iteration: all},
  partitionPolicy: {totalPartitions: 1, partitionSize: 2, networkTopology: {mode: hard, highestTierName: x}}, @t}, {name: b, minAvailable: 0, maxRetry: 3, @t}]}`,
		},
		"plugins that others bring along": {
			given: "{plugins: {mpi: [--master=a]}, tasks: [{name: a, @t}]}",
			want:  "{plugins: {mpi: [--master=a], svc: null, ssh: null}, queue: default, maxRetry: 3, tasks: [{name: a, minAvailable: 0, maxRetry: 3, @t}]}",
		},
		"plugins that are there": {
			given: "{plugins: {pytorch: [], svc: [--x]}, tasks: [{name: a, @t}]}",
			want:  "{plugins: {pytorch: [], svc: [--x]}, queue: default, maxRetry: 3, tasks: [{name: a, minAvailable: 0, maxRetry: 3, @t}]}",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			given := &jobOf(t, objectOf(t, "", tc.given)).Spec
			before := given.DeepCopy()
			want := &jobOf(t, objectOf(t, "", tc.want)).Spec
			if diff := cmp.Diff(want, effective(given)); diff != "" {
				t.Errorf("with defaults (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(before, given); diff != "" {
				t.Errorf("what was given has changed (-before,+after):\n%s", diff)
			}
		})
	}
}

func TestDefaultsOfASpecThatNobodyCheckedAreNumbers(t *testing.T) {
	const most = 1<<31 - 1
	spec := &batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{
		{Replicas: most}, {Replicas: most},
		{PartitionPolicy: &batchv1alpha1.PartitionPolicySpec{MinPartitions: most, PartitionSize: most}},
	}}
	got := effective(spec)
	if got.MinAvailable != most || *got.Tasks[2].MinAvailable != most {
		t.Errorf("minima: got %d and %d, want the largest number", got.MinAvailable, *got.Tasks[2].MinAvailable)
	}
}

func TestTheHashIsThatOfWhatASpecMeans(t *testing.T) {
	template := func(containers string) string {
		return "{tasks: [{replicas: 2, template: {metadata: {labels: {protocol: TCP}}, spec: {containers: " + containers + "}}}], plugins: {tensorflow: []}}"
	}
	tests := map[string]struct {
		a, b string
		same bool
	}{
		"defaults of the Job, left out or filled in": {
			a:    "{tasks: [{replicas: 2, dependsOn: {name: [x]}, @t}], networkTopology: {highestTierAllowed: 1}}",
			b:    "{queue: default, maxRetry: 3, minAvailable: 2, tasks: [{name: default0, replicas: 2, minAvailable: 2, maxRetry: 3, dependsOn: {name: [x], iteration: all}, @t}], networkTopology: {mode: hard, highestTierAllowed: 1}}",
			same: true,
		},
		"defaults of a template": {
			a:    template("[{name: c, ports: [{containerPort: 1}], env: [{name: E, valueFrom: {configMapKeyRef: {key: k}}}]}]"),
			b:    template("[{name: c, ports: [{containerPort: 1, protocol: TCP}], env: [{name: E, value: null, valueFrom: {configMapKeyRef: {key: k, name: ''}}}]}]"),
			same: true,
		},
		"a plugin without flags, in two ways": {a: "{plugins: {env: []}, tasks: [{@t}]}", b: "{plugins: {env: null}, tasks: [{@t}]}", same: true},
		"a plugin without flags, and none":    {a: "{plugins: {env: null}, tasks: [{@t}]}", b: "{tasks: [{@t}]}"},
		"another protocol":                    {a: template("[{name: c, ports: [{containerPort: 1}]}]"), b: template("[{name: c, ports: [{containerPort: 1, protocol: UDP}]}]")},
		"a label":                             {a: template("[{name: c}]"), b: "{tasks: [{replicas: 2, template: {metadata: {labels: {}}, spec: {containers: [{name: c}]}}}], plugins: {tensorflow: []}}"},
		"a queue":                             {a: "{queue: q, tasks: [{@t}]}", b: "{tasks: [{@t}]}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := immutableHash(&jobOf(t, objectOf(t, "", tc.a)).Spec), immutableHash(&jobOf(t, objectOf(t, "", tc.b)).Spec)
			if (a == b) != tc.same {
				t.Errorf("the hashes are equal: %v, want %v", a == b, tc.same)
			}
		})
	}
}

func TestAHashThatWasMadeInAnotherWayKeepsNoJobFromItsPods(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	s.written.ControlledResources[hashOnRecord] = "0123456789abcdef"
	for _, name := range s.names(KindPodGroup) {
		s.objects[ObjectKey{KindPodGroup, name}].(*schedulingv1alpha1.PodGroup).Annotations[KeyImmutableHash] = "0123456789abcdef"
	}
	s.crash()
	s.kill("j-a-1").after(2).has(tally{r: 2})
	if got := s.written.ControlledResources[hashOnRecord]; got != immutableHash(&s.job.Spec) {
		t.Errorf("on record is %q", got)
	}
}
