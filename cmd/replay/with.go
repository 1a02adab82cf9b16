// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// playWith lets the program of --with play the jobs by one of Lockstep's policies. It passes the workload to that
// program in a file, and reads the figures from the file that --json writes.
func (o *options) playWith(name string, jobs []workload.Job, nodes workload.Nodes, bounds figures.Bounds) (figures.Figures, error) {
	dir, err := os.MkdirTemp("", "lockstep-replay-")
	if err != nil {
		return figures.Figures{}, err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "workload.json"), filepath.Join(dir, "figures.json")
	file, err := os.Create(in)
	if err != nil {
		return figures.Figures{}, err
	}
	err = workload.Write(file, jobs, nodes)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return figures.Figures{}, fmt.Errorf("writing the workload: %w", err)
	}
	var sizes []string
	for _, bound := range bounds {
		sizes = append(sizes, strconv.Itoa(bound))
	}
	args := []string{"--trace", in, "--format", "replay", "--policies", name, "--sizes", strings.Join(sizes, ","), "--json", out}
	if o.args != "" {
		args = append(args, "--args", o.args)
	}
	if o.liars != 0 {
		args = append(args, "--liars", strconv.FormatFloat(o.liars, 'g', -1, 64))
	}
	if o.starts {
		args = append(args, "--expected-starts")
	}
	if said, err := exec.Command(o.with, args...).CombinedOutput(); err != nil {
		return figures.Figures{}, fmt.Errorf("%w: %s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return figures.Figures{}, err
	}
	var all []figures.Figures
	if err := json.Unmarshal(text, &all); err != nil {
		return figures.Figures{}, fmt.Errorf("reading its figures: %w", err)
	}
	if len(all) != 1 {
		return figures.Figures{}, fmt.Errorf("its figures are of %d policies, and must be of one", len(all))
	}
	all[0].Policy = name + "@" + filepath.Base(o.with)
	return all[0], nil
}
