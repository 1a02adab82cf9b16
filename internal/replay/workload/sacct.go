// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// ReadSacct reads the output of Slurm's sacct with --parsable2 or -P: a line of names, and a line for each job with
// fields separated by "|" (https://slurm.schedmd.com/sacct.html).
//
//   - It needs JobID or JobIDRaw, Submit, Elapsed or ElapsedRaw, and AllocTRES or AllocCPUS.
//   - It also reads Timelimit or TimelimitRaw, and Account or User.
//   - Units are GPUs if any job has GPUs, otherwise processors.
//   - It skips steps of jobs, and jobs that never ran.
func ReadSacct(r io.Reader, perNode int) (Trace, error) {
	reader := csv.NewReader(r)
	reader.Comma, reader.LazyQuotes, reader.FieldsPerRecord = '|', true, -1
	header, err := reader.Read()
	if err != nil {
		return Trace{}, fmt.Errorf("reading the names of fields: %w", err)
	}
	at := map[string]int{}
	for i, name := range header {
		at[strings.TrimSpace(name)] = i
	}
	for _, need := range [][]string{{"JobIDRaw", "JobID"}, {"Submit"}, {"ElapsedRaw", "Elapsed"}, {"AllocTRES", "AllocCPUS"}} {
		if !anyOf(at, need) {
			return Trace{}, fmt.Errorf("there is no field %s; the fields are %s", strings.Join(need, " or "), strings.Join(header, ", "))
		}
	}
	type asked struct{ gpus, cpus int }
	var all []asked
	trace, hasGPUs := Trace{Units: perNode}, false
	for n := 2; ; n++ {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Trace{}, fmt.Errorf("reading: %w", err)
		}
		field := func(names ...string) string {
			for _, name := range names {
				if i, ok := at[name]; ok && i < len(row) && row[i] != "" {
					return strings.TrimSpace(row[i])
				}
			}
			return ""
		}
		id := field("JobIDRaw", "JobID")
		if strings.Contains(id, ".") {
			continue // a step
		}
		elapsed, err := slurmTime(field("ElapsedRaw", "Elapsed"), time.Second)
		if err != nil {
			return Trace{}, fmt.Errorf("line %d, Elapsed: %w", n, err)
		}
		submit, err := instant(field("Submit"))
		if err != nil {
			return Trace{}, fmt.Errorf("line %d, Submit: %w", n, err)
		}
		allowed, err := slurmTime(field("TimelimitRaw", "Timelimit"), time.Minute)
		if err != nil {
			return Trace{}, fmt.Errorf("line %d, Timelimit: %w", n, err)
		}
		of := asked{gpus: amountIn(field("AllocTRES"), "gres/gpu"), cpus: amountIn(field("AllocTRES"), "cpu")}
		if of.cpus == 0 {
			of.cpus, _ = strconv.Atoi(field("AllocCPUS")) // 0 if the job has none
		}
		if elapsed == 0 || of.cpus == 0 && of.gpus == 0 {
			trace.Skipped++
			continue
		}
		hasGPUs = hasGPUs || of.gpus > 0
		trace.Jobs = append(trace.Jobs, Job{Name: id, Owner: field("Account", "User"), Submit: seconds(submit), Runtime: elapsed, Limit: min(allowed, longest)})
		all = append(all, of)
	}
	kept := trace.Jobs[:0]
	for i, job := range trace.Jobs {
		units := all[i].cpus
		if hasGPUs {
			units = all[i].gpus
		}
		if units == 0 {
			trace.Skipped++ // it has no GPU, and others have
			continue
		}
		job.Split(units, perNode)
		kept = append(kept, job)
	}
	trace.Jobs = kept
	return trace, nil
}

func anyOf(at map[string]int, names []string) bool {
	for _, name := range names {
		if _, ok := at[name]; ok {
			return true
		}
	}
	return false
}

// amountIn returns the amount of a resource in a list of trackable resources such as
// "billing=8,cpu=8,gres/gpu=4,node=1"; 0 if the list lacks the resource.
func amountIn(list, name string) int {
	for item := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(item, "="); ok && key == name {
			number, _ := strconv.Atoi(value) // memory has a suffix, and is not asked for
			return number
		}
	}
	return 0
}

// slurmTime parses [DAYS-]HH:MM:SS, MM:SS, or a number of units. slurmTime returns 0 if there is no time, or no limit.
func slurmTime(text string, unit time.Duration) (time.Duration, error) {
	switch text {
	case "", "UNLIMITED", "Partition_Limit", "INVALID":
		return 0, nil
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return seconds(float64(number) * unit.Seconds()), nil
	}
	days, clock := 0, text
	if left, right, ok := strings.Cut(text, "-"); ok {
		number, err := strconv.Atoi(left)
		if err != nil {
			return 0, fmt.Errorf("%q is no time of Slurm such as 1-02:03:04", text)
		}
		days, clock = number, right
	}
	total := 0.0
	for part := range strings.SplitSeq(clock, ":") {
		number, err := strconv.Atoi(part)
		if err != nil {
			return 0, fmt.Errorf("%q is no time of Slurm such as 1-02:03:04", text)
		}
		total = total*60 + float64(number)
	}
	return seconds(float64(days)*86400 + total), nil
}
