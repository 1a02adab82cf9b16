// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Fields of a line of the Standard Workload Format, version 2.2, counted from 0
// (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html).
const (
	swfNumber = iota
	swfSubmit
	_ // wait
	swfRuntime
	swfAllocated
	_ // average processor time
	_ // used memory
	swfRequested
	swfRequestedTime
	_ // requested memory
	swfStatus
	swfUser
	swfFields
)

// swfParts are the states of lines that describe a part of a run that was interrupted. A line with another state describes
// the job as a whole.
var swfParts = []string{"2", "3", "4"}

// Trace is the content of a file: the jobs, and the machine if the file describes one.
type Trace struct {
	Jobs []Job
	// Nodes is the machine's number of nodes, and Units the number of processors of each node; 0 if the file does not
	// say.
	Nodes, Units int
	// Skipped is how many jobs were skipped because they have no run time or no size, such as cancelled jobs.
	Skipped int
}

// ReadSWF reads a file in the Standard Workload Format. perNode is the number of processors of a node; 0 means the
// number in the file's header, or 1 without one. A job with more processors than a node gets Pods that each fill a
// node.
func ReadSWF(r io.Reader, perNode int) (Trace, error) {
	var trace Trace
	procs := 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		if header, ok := strings.CutPrefix(line, ";"); ok {
			name, value, _ := strings.Cut(header, ":")
			count := 0
			if words := strings.Fields(strings.ReplaceAll(value, ",", "")); len(words) > 0 {
				count, _ = strconv.Atoi(words[0]) // 0 if it is no number: the header is free text
			}
			switch strings.TrimSpace(name) {
			case "MaxNodes":
				trace.Nodes = count
			case "MaxProcs":
				procs = count
			}
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < swfUser {
			return Trace{}, fmt.Errorf("line %d: it has %d fields, and the Standard Workload Format has 18", n, len(fields))
		}
		if slices.Contains(swfParts, fields[swfStatus]) {
			continue
		}
		values := make([]float64, swfFields)
		for _, field := range []int{swfSubmit, swfRuntime, swfAllocated, swfRequested, swfRequestedTime} {
			value, err := number(fields[field])
			if err != nil {
				return Trace{}, fmt.Errorf("line %d, field %d: %w", n, field+1, err)
			}
			values[field] = value
		}
		size := int(values[swfRequested])
		if size <= 0 {
			size = int(values[swfAllocated])
		}
		cancelled := fields[swfStatus] == "5" && values[swfAllocated] <= 0
		if size <= 0 || values[swfRuntime] < 0 || cancelled {
			trace.Skipped++
			continue
		}
		job := Job{Name: fields[swfNumber], Submit: seconds(values[swfSubmit]), Runtime: seconds(values[swfRuntime]), Limit: limit(max(values[swfRequestedTime], 0))}
		if len(fields) > swfUser && fields[swfUser] != "-1" {
			job.Owner = "u" + fields[swfUser]
		}
		job.Units = size
		trace.Jobs = append(trace.Jobs, job)
	}
	if err := lines.Err(); err != nil {
		return Trace{}, fmt.Errorf("reading: %w", err)
	}
	trace.Units = 1
	switch {
	case perNode > 0:
		trace.Units = perNode
	case trace.Nodes > 0 && procs > trace.Nodes:
		trace.Units = (procs + trace.Nodes - 1) / trace.Nodes // a part of the nodes may not be for jobs
	}
	if procs > 0 {
		trace.Nodes = (procs + trace.Units - 1) / trace.Units
	}
	for i := range trace.Jobs {
		trace.Jobs[i].Split(trace.Jobs[i].Units, trace.Units)
	}
	return trace, nil
}
