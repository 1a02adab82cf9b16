// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// jobsOf lists the jobs of a trace: name, Pods and units of each Pod.
func jobsOf(trace Trace) string {
	var list []string
	for _, job := range trace.Jobs {
		list = append(list, fmt.Sprintf("%s:%dx%d", job.Name, job.Pods, job.Units))
	}
	return strings.Join(list, " ")
}

func TestRowsOfSacctAreRead(t *testing.T) {
	const header = "JobIDRaw|JobName|State|Submit|ElapsedRaw|AllocCPUS|AllocTRES\n"
	for name, test := range map[string]struct {
		rows    string
		jobs    string
		skipped int
		err     string
	}{
		"names with quotes":                {rows: "1|\"a|COMPLETED|2026-11-01T08:00:00|60|4|\n2|b\"|COMPLETED|2026-11-01T08:00:00|60|4|\n\n3|\"c\"|TIMEOUT|2026-11-01T08:00:00|60|4|\r\n", jobs: "1:1x4 2:1x4 3:1x4"},
		"GPUs with a type":                 {rows: "1|a|COMPLETED|2026-11-01T08:00:00|60|64|cpu=64,gres/gpu:a100=8\n", jobs: "1:1x8"},
		"GPUs of two types":                {rows: "1|a|COMPLETED|2026-11-01T08:00:00|60|64|cpu=64,gres/gpu:a100=2,gres/gpu:h100=3,gres/gpumem=40G\n", jobs: "1:1x5"},
		"the same GPUs with and without":   {rows: "1|a|COMPLETED|2026-11-01T08:00:00|60|64|cpu=64,gres/gpu:a100=8,gres/gpu=8\n", jobs: "1:1x8"},
		"more GPUs than a number has":      {rows: "1|a|COMPLETED|2026-11-01T08:00:00|60|64|gres/gpu:a=99999999999999999999,gres/gpu:b=9\n", jobs: "1:125000000x8"},
		"processors that are no number":    {rows: "1|a|COMPLETED|2026-11-01T08:00:00|60|4|\n2|a|COMPLETED|2026-11-01T08:00:00|60|4x|\n", err: `line 3, AllocCPUS: "4x" is no number`},
		"no processors":                    {rows: "1|a|COMPLETED|2026-11-01T08:00:00|60||\n", skipped: 1},
		"a time that is none":              {rows: "\n1|a|COMPLETED|soon|60|4|\n", err: "line 3, Submit"},
		"a job that never ran":             {rows: "1|a|CANCELLED by 0|Unknown|0|x|\n2|a|FAILED|Unknown||x|\n", skipped: 2},
		"jobs that still run or wait":      {rows: "1|a|RUNNING|2026-11-01T08:00:00|60|4|\n2|a|PENDING|Unknown|x|x|\n3|a|SUSPENDED|2026-11-01T08:00:00|60|4|\n4|a|REQUEUED|2026-11-01T08:00:00|60|4|\n5|a|RESIZING|2026-11-01T08:00:00|60|4|\n", skipped: 5},
		"jobs that ended in whichever way": {rows: "1|a|CANCELLED by 7|2026-11-01T08:00:00|60|4|\n2|a|PREEMPTED|2026-11-01T08:00:00|60|4|\n3|a||2026-11-01T08:00:00|60|4|\n", jobs: "1:1x4 2:1x4 3:1x4"},
		"a negative run time":              {rows: "1|a|FAILED|2026-11-01T08:00:00|-1|4|\n", skipped: 1},
	} {
		trace, err := ReadSacct(strings.NewReader(header+test.rows), 8)
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", name, err, test.err)
		}
		if got := jobsOf(trace); got != test.jobs || trace.Skipped != test.skipped {
			t.Errorf("%s: jobs %q, %d skipped, want %q and %d", name, got, trace.Skipped, test.jobs, test.skipped)
		}
	}
	if _, err := ReadSacct(strings.NewReader(""), 8); err == nil || !strings.Contains(err.Error(), "reading the names of fields") {
		t.Errorf("an empty file: error %v", err)
	}
}

func TestNumbersOfACSVFileAreRead(t *testing.T) {
	columns := Columns{Submit: "start", Runtime: "seconds", Limit: "limit", Units: "gpus"}
	for row, test := range map[string]struct {
		jobs    string
		limit   time.Duration
		skipped int
		err     string
	}{
		"0,60,90,0.5":                 {jobs: "2:1x1", limit: 90 * time.Second},
		"0,60,90,2.7":                 {jobs: "2:1x3", limit: 90 * time.Second},
		"0,60,90,25":                  {jobs: "2:4x8", limit: 90 * time.Second},
		"0,60,-1,1":                   {jobs: "2:1x1"},
		"0,60,,1":                     {jobs: "2:1x1"},
		"0,60, ,1":                    {jobs: "2:1x1"},
		"0,,90,1":                     {skipped: 1},
		"0,-1,90,1":                   {skipped: 1},
		",,90,1":                      {skipped: 1},
		"0,60,90,":                    {skipped: 1},
		"0,60,90,-0.5":                {skipped: 1},
		"0,60,90,two":                 {err: `line 2, column gpus: "two" is no number`},
		"0,60,90,2017-10-09 07:01:55": {err: `line 2, column gpus: "2017-10-09 07:01:55" is no number`},
		"0,60,1h,1":                   {err: `line 2, column limit: "1h" is no number`},
		"soon,60,90,1":                {err: `line 2, column start: "soon" is neither a number of seconds nor a time`},
	} {
		trace, err := ReadCSV(strings.NewReader("start,seconds,limit,gpus\n"+row+"\n"), columns, 8)
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", row, err, test.err)
		}
		if got := jobsOf(trace); got != test.jobs || trace.Skipped != test.skipped {
			t.Errorf("%s: jobs %q, %d skipped, want %q and %d", row, got, trace.Skipped, test.jobs, test.skipped)
		}
		if len(trace.Jobs) > 0 && trace.Jobs[0].Limit != test.limit {
			t.Errorf("%s: the limit is %s, want %s", row, trace.Jobs[0].Limit, test.limit)
		}
	}
}
