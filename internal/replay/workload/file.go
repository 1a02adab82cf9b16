// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// file is a workload in Lockstep's own file format, which keeps the number and the size of each job's Pods. Times are
// in seconds.
type file struct {
	Nodes Nodes     `json:"nodes"`
	Jobs  []fileJob `json:"jobs"`
}

type fileJob struct {
	Name    string  `json:"name"`
	Owner   string  `json:"owner,omitempty"`
	Submit  float64 `json:"submit"`
	Runtime float64 `json:"runtime"`
	Limit   float64 `json:"limit,omitempty"`
	Pods    int     `json:"pods"`
	Units   int     `json:"unitsPerPod"`
}

// Write writes jobs and nodes as JSON, which Read reads.
func Write(w io.Writer, jobs []Job, nodes Nodes) error {
	all := file{Nodes: nodes, Jobs: make([]fileJob, len(jobs))}
	for i, job := range jobs {
		all.Jobs[i] = fileJob{
			Name: job.Name, Owner: job.Owner, Pods: job.Pods, Units: job.Units,
			Submit: job.Submit.Seconds(), Runtime: job.Runtime.Seconds(), Limit: job.Limit.Seconds(),
		}
	}
	return json.NewEncoder(w).Encode(all)
}

// Read reads what Write has written.
func Read(r io.Reader) ([]Job, Nodes, error) {
	var all file
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, nil, fmt.Errorf("want an object with nodes and jobs: %w", err)
	}
	if err := all.Nodes.check(); err != nil {
		return nil, nil, err
	}
	jobs := make([]Job, len(all.Jobs))
	for i, job := range all.Jobs {
		jobs[i] = Job{
			Name: job.Name, Owner: job.Owner, Pods: job.Pods, Units: job.Units,
			Submit: seconds(job.Submit).Round(time.Millisecond), Runtime: seconds(job.Runtime).Round(time.Millisecond),
			Limit: limit(job.Limit).Round(time.Millisecond),
		}
	}
	return jobs, all.Nodes, Check(jobs)
}
