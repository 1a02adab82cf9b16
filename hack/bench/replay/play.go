// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// figuresByPolicy are the figures of one workload, by the name of the policy.
type figuresByPolicy map[string]figures.Figures

// play has lockstep-replay, which must be in the PATH, play a workload that its flags describe.
func play(ctx context.Context, b *harness.Bench, flags ...string) (figuresByPolicy, error) {
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "figures.json")
	cmd := exec.CommandContext(ctx, "lockstep-replay", append(slices.Clip(flags), "--json="+file)...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	b.Logf("%s", strings.Join(cmd.Args, " "))
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running lockstep-replay: %w", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []figures.Figures
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the figures of lockstep-replay: %w", err)
	}
	played := figuresByPolicy{}
	for _, f := range all {
		played[f.Policy] = f
	}
	return played, nil
}

// waitsByPolicy are waits in seconds, by the name of the policy.
type waitsByPolicy map[string]figures.Wait

// waits returns a wait of the jobs of a class for each policy. It returns an error if the workload has no such job, or
// if the wait is infinite because jobs never started.
func (p figuresByPolicy) waits(class string, field func(figures.Class) figures.Wait) (waitsByPolicy, error) {
	waits := waitsByPolicy{}
	for name, f := range p {
		at := slices.IndexFunc(f.Classes, func(c figures.Class) bool { return c.Name == class })
		if at < 0 {
			return nil, fmt.Errorf("the workload has no job of the size %s", class)
		}
		waits[name] = field(f.Classes[at])
		if math.IsInf(float64(waits[name]), 1) {
			return nil, fmt.Errorf("policy %s: jobs of the size %s never started", name, class)
		}
	}
	return waits, nil
}

// ratio returns the wait of a policy divided by that of another. Waits below a second count as a second.
func (w waitsByPolicy) ratio(policy, other string) float64 {
	return float64(max(1, w[policy]) / max(1, w[other]))
}

// inHours returns all waits as a text.
func (w waitsByPolicy) inHours() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(w)) {
		texts = append(texts, fmt.Sprintf("%s %.2f", name, w[name]/3600))
	}
	return strings.Join(texts, ", ")
}

// nodesFor returns how many nodes a trace needs for a load: the part of all node time that its jobs ask for.
func nodesFor(trace, columns string, perNode int, load float64) (int, error) {
	parsed, err := workload.ParseColumns(columns)
	if err != nil {
		return 0, err
	}
	file, err := os.Open(trace)
	if err != nil {
		return 0, fmt.Errorf("opening the trace: %w", err)
	}
	defer file.Close()
	read, err := workload.ReadCSV(file, parsed, perNode)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", trace, err)
	}
	const enough = 100_000
	jobs, _ := workload.Prepare(read.Jobs, workload.Uniform(enough, perNode))
	return max(1, int(math.Round(workload.Load(jobs, workload.Uniform(1, perNode))/load))), nil
}
