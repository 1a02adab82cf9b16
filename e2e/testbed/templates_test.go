// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestTemplatesAreExpanded(t *testing.T) {
	spec := "{tasks: [{name: a, @2→1/3, replicas: 2}, {name: b, @∞{priorityClassName: p, affinity: {}}}]}"
	const want = `{tasks: [
{name: a, replicas: 2, template: {metadata: {annotations: {simulate.lockstep.dev/run-seconds: "2", simulate.lockstep.dev/exit-code: "1"}},
  spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}],
    nodeSelector: {tests.lockstep.dev/room: r}, tolerations: [{key: tests.lockstep.dev/room, operator: Exists}]}}},
{name: b, template: {metadata: {annotations: {}},
  spec: {restartPolicy: Never, containers: [{name: c, image: i}], priorityClassName: p, affinity: {},
    nodeSelector: {tests.lockstep.dev/room: r}, tolerations: [{key: tests.lockstep.dev/room, operator: Exists}]}}}]}`
	var got, wanted any
	expanded := expandTemplates(spec, "c", "restartPolicy: Never", &Room{name: "r"})
	if err := yaml.Unmarshal([]byte(expanded), &got); err != nil {
		t.Fatalf("%v: %s", err, expanded)
	}
	if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("templates (-want,+got):\n%s", diff)
	}
}

func TestTemplatesOfPodsThatTheTestRuns(t *testing.T) {
	for spec, want := range map[string]string{
		"{@?}":                    "{template: {metadata: {annotations: {}}, spec: {schedulerName: by-hand, containers: [{name: main, image: i}]}}}",
		"{@∞}":                    "{template: {metadata: {annotations: {}}, spec: {containers: [{name: main, image: i}]}}}",
		"{@?{hostname: h}, a: b}": "{template: {metadata: {annotations: {}}, spec: {schedulerName: by-hand, containers: [{name: main, image: i}], hostname: h}}, a: b}",
	} {
		if got := expandTemplates(spec, "main", "", nil); got != want {
			t.Errorf("%s stands for %s, want %s", spec, got, want)
		}
	}
}
