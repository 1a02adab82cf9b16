// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAWorkloadIsReadAsItWasWritten(t *testing.T) {
	jobs := []Job{
		{Name: "a", Owner: "team", Submit: 1500 * time.Millisecond, Runtime: time.Hour, Limit: 2 * time.Hour, Pods: 16, Units: 4},
		{Name: "b", Submit: time.Minute, Runtime: time.Second, Pods: 1, Units: 1},
	}
	nodes := Nodes{8, 8, 4}
	var b bytes.Buffer
	if err := Write(&b, jobs, nodes); err != nil {
		t.Fatal(err)
	}
	readJobs, readNodes, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jobs, readJobs); diff != "" {
		t.Errorf("jobs (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(nodes, readNodes); diff != "" {
		t.Errorf("nodes (-written +read):\n%s", diff)
	}
	for text, want := range map[string]string{
		`[]`:                        "want an object with nodes and jobs",
		`{"nodes":[0]}`:             "node 0 has 0 units",
		`{"nodes":[1000000000000]}`: "node 0 has 1000000000000 units, and must have 1 to 10000",
		`{"jobs":[{"name":"a","pods":0,"unitsPerPod":1}]}`: "it has 0 Pods",
	} {
		if _, _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}
