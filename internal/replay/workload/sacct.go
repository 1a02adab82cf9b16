// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// notEnded are the states of jobs that run or wait.
var notEnded = []string{"PENDING", "REQUEUED", "RESIZING", "RUNNING", "SUSPENDED"}

// ReadSacct reads the output of Slurm's sacct with --parsable2 or -P: a line of names, and a line for each job with
// fields separated by "|" (https://slurm.schedmd.com/sacct.html). sacct never quotes a field.
//
//   - It needs JobID or JobIDRaw, Submit, Elapsed or ElapsedRaw, and AllocTRES or AllocCPUS.
//   - It also reads Timelimit or TimelimitRaw, Account or User, and State.
//   - Units are GPUs if any job has GPUs, otherwise processors.
//   - It skips jobs that never ran, jobs that run or wait by their State, and jobs without a size.
//   - It ignores steps of jobs.
func ReadSacct(r io.Reader, perNode int) (Trace, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return Trace{}, fmt.Errorf("reading the names of fields: %w", cmp.Or(lines.Err(), io.EOF))
	}
	header := strings.Split(lines.Text(), "|")
	at := map[string]int{}
	for i, name := range header {
		at[strings.TrimSpace(name)] = i
	}
	for _, need := range [][]string{{"JobIDRaw", "JobID"}, {"Submit"}, {"ElapsedRaw", "Elapsed"}, {"AllocTRES", "AllocCPUS"}} {
		if !anyOf(at, need) {
			return Trace{}, fmt.Errorf("there is no field %s; the fields are %q", strings.Join(need, " or "), text.Shorten(strings.Join(header, ", "), 500))
		}
	}
	type asked struct{ gpus, cpus int }
	var all []asked
	trace, hasGPUs := Trace{Units: perNode}, false
	for n := 2; lines.Scan(); n++ {
		if lines.Text() == "" {
			continue
		}
		row := strings.Split(lines.Text(), "|")
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
		if state, _, _ := strings.Cut(field("State"), " "); slices.Contains(notEnded, state) {
			trace.Skipped++
			continue
		}
		elapsed, err := slurmTime(field("ElapsedRaw", "Elapsed"), time.Second)
		if err != nil {
			return Trace{}, fmt.Errorf("line %d, Elapsed: %w", n, err)
		}
		if elapsed <= 0 { // the Submit of such a job may be Unknown
			trace.Skipped++
			continue
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
		if text := field("AllocCPUS"); of.cpus == 0 && text != "" {
			cpus, err := number(text)
			if err != nil {
				return Trace{}, fmt.Errorf("line %d, AllocCPUS: %w", n, err)
			}
			of.cpus = int(max(0, cpus))
		}
		if of.cpus == 0 && of.gpus == 0 {
			trace.Skipped++
			continue
		}
		hasGPUs = hasGPUs || of.gpus > 0
		trace.Jobs = append(trace.Jobs, Job{Name: id, Owner: field("Account", "User"), Submit: seconds(submit), Runtime: elapsed, Limit: min(allowed, longest)})
		all = append(all, of)
	}
	if err := lines.Err(); err != nil {
		return Trace{}, fmt.Errorf("reading: %w", err)
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
// "billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,node=1"; 0 if the list lacks the resource. If the list has the resource
// only with types, as in gres/gpu:a100, amountIn returns the sum of all types.
func amountIn(list, name string) int {
	sum := 0
	for item := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(item, "=")
		amount, _ := strconv.Atoi(value) // memory has a suffix, and is not asked for
		amount = max(0, min(amount, mostPods))
		if key == name {
			return amount
		}
		if strings.HasPrefix(key, name+":") {
			sum += amount
		}
	}
	return sum
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
