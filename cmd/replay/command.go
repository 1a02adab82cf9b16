// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/internal/interrupt"
	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
	"github.com/lockstep-k8s/lockstep/internal/replay/live"
	"github.com/lockstep-k8s/lockstep/internal/replay/machine"
	"github.com/lockstep-k8s/lockstep/internal/replay/page"
	"github.com/lockstep-k8s/lockstep/internal/replay/policy"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// lockstep is the name of the policy that is Lockstep's scheduler itself.
const lockstep = "lockstep"

// blind is the same scheduler without a word of how long jobs run.
const blind = "lockstep-blind"

// policies returns the names of all policies.
func policies() []string {
	all := []string{lockstep, blind}
	for _, name := range policy.Names {
		all = append(all, string(name))
	}
	return all
}

// options are what the flags say.
type options struct {
	// t is the test as which the command runs.
	t *testing.T
	// progress is where the command says what it does.
	progress               io.Writer
	trace, format, columns string
	nodes                  string
	policies               []string
	bounds                 []int
	overstate, liars       float64
	generate               string
	jobs, variants         int
	load                   float64
	seed                   uint64
	args                   string
	starts                 bool
	json, html             string
	live                   liveOptions
	with                   string
}

func newCommand(t *testing.T) *cobra.Command {
	o := &options{t: t}
	cmd := &cobra.Command{
		Use:   "lockstep-replay",
		Short: "Say what Lockstep's scheduler would have done with a workload, beside other policies",
		Long: `lockstep-replay plays a workload with Lockstep's scheduler, in virtual time on an API server in memory, once with
the limits of jobs as estimates, and once without (lockstep-blind). For comparison it also plays the workload with the policies of
textbooks: fifo, greedy (any job that fits), easy (EASY backfill with the workload's limits) and easy-true (EASY backfill with the
true run times).`,
		Example: `  lockstep-replay --trace machine.swf
  lockstep-replay --trace jobs.csv --columns submit=start,runtime=seconds,units=gpus --nodes 84x8
  lockstep-replay --generate capability --nodes 512x1 --jobs 2000 --load 0.82`,
		Args:         cobra.NoArgs,
		Version:      buildinfo.Version(),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.progress = cmd.ErrOrStderr()
			return o.run(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.trace, "trace", "", "file of the workload; this or --generate is required")
	flags.StringVar(&o.format, "format", "", "format of the file: swf, csv, sacct (what sacct -P prints), objects (what kubectl get frameworks,vcjobs,pytorchjobs,jobs -o json prints) or replay (what --with gives to another build) (default: swf or csv by the end of its name)")
	flags.StringVar(&o.columns, "columns", "", "where a CSV file has what is needed: submit=COLUMN or interval=COLUMN, runtime=COLUMN, units=COLUMN, and limit=COLUMN and owner=COLUMN if it has them")
	flags.StringVar(&o.nodes, "nodes", "", "nodes of the cluster: 84x8 are 84 nodes of 8 units each, GPUs or processors; else a file of what kubectl get nodes -o json prints (default: those of the trace)")
	flags.StringSliceVar(&o.policies, "policies", policies(), "policies to play")
	flags.IntSliceVar(&o.bounds, "sizes", nil, "largest sizes of the classes by which waits are shown, in units, such as 1,8,16")
	flags.Float64Var(&o.overstate, "overstate", 0, "give each job a limit that is its run time times a factor, drawn evenly from 1 to this number, at most 1000; 0 leaves the limits as they are")
	flags.Float64Var(&o.liars, "liars", 0, "have the two owners with the most work state wrong limits: run times times this number, and run times divided by it. Each policy plays twice, to compare how long others wait with and without lies; 0: nobody lies")
	flags.StringVar(&o.generate, "generate", "", "generate a workload: capability (large jobs on a machine) or training (a cluster of GPUs)")
	flags.IntVar(&o.jobs, "jobs", 1000, "how many jobs to generate, 1 to 1000000")
	flags.Float64Var(&o.load, "load", 0.9, "part of all node time that generated jobs ask for, above 0, up to 2")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all that is drawn")
	flags.IntVar(&o.variants, "variants", 0, "play so many variants, at most 100, and show medians: whole weeks of the workload, drawn with replacement, and run times that differ by up to 1 %; 0 plays the workload as it is")
	flags.StringVar(&o.args, "args", "", "arguments of the plugin Coscheduling, as JSON, in place of those of the replay: the shipped ones without the PodGroups of other projects")
	flags.BoolVar(&o.starts, "expected-starts", false, "enforce limits, and measure how accurate the expected starts of jobs are")
	flags.StringVar(&o.html, "html", "", "file to draw the figures to, as a page for a browser")
	flags.StringVar(&o.json, "json", "", "file to write the figures to")
	flags.StringVar(&o.with, "with", "", "another build of lockstep-replay, which plays the policies lockstep and lockstep-blind with the same workload, too")
	o.live.add(flags)
	return cmd
}

func (o *options) run(out io.Writer) error {
	onCluster, err := o.live.parse()
	if err != nil {
		return err
	}
	if err := o.checkFlags(); err != nil {
		return err
	}
	in, err := o.input()
	if err != nil {
		return err
	}
	if err := workload.Check(in.jobs); err != nil {
		return err
	}
	jobs, tooLarge := workload.Prepare(in.jobs, in.nodes)
	leftOut := fmt.Sprintf("left out: %d that did not run or need no units, %d larger than the cluster", in.skipped, tooLarge)
	if len(jobs) == 0 {
		return fmt.Errorf("the workload has no job to play; %s", leftOut)
	}
	if o.overstate != 0 {
		jobs = workload.Estimates(jobs, o.overstate, o.seed)
	}
	if o.starts {
		jobs = workload.Enforced(jobs)
	}
	if err := o.checkLiars(jobs); err != nil {
		return err
	}
	bounds := figures.Bounds(o.bounds)
	if len(bounds) == 0 {
		bounds = figures.DefaultBounds(in.nodes)
	}
	title := fmt.Sprintf("%s on %s of up to %s, load %.2f", text.Counted(len(jobs), "job"), text.Counted(len(in.nodes), "node"),
		text.Counted(in.nodes.Largest(), "unit"), workload.Load(jobs, in.nodes))
	fmt.Fprintf(out, "%s; %s\n\n", title, leftOut)
	var all []figures.Figures
	for _, p := range o.plays(in.nodes, bounds, onCluster) {
		fmt.Fprintf(o.progress, "playing %s\n", p.name)
		var variants []figures.Figures
		for variant := range max(1, o.variants) {
			f, err := p.of(o.variant(jobs, variant))
			if err != nil { // The figures of the others are there.
				return errors.Join(figures.WriteTable(out, all), fmt.Errorf("playing %s: %w", p.name, err))
			}
			variants = append(variants, f)
		}
		all = append(all, figures.Median(variants))
	}
	return errors.Join(figures.WriteTable(out, all), o.write(title, all))
}

// checkFlags returns an error if a flag is out of range, before anything is played.
func (o *options) checkFlags() error {
	own := slices.Contains(o.policies, lockstep) || slices.Contains(o.policies, blind)
	for _, name := range o.policies {
		if !slices.Contains(policies(), name) {
			return fmt.Errorf("--policies has %q, and policies are %s", name, strings.Join(policies(), ", "))
		}
	}
	switch {
	case len(o.policies) == 0:
		return errors.New("--policies is empty: at least one policy is needed")
	case o.with != "" && !own:
		return errors.New("--with plays the policies lockstep and lockstep-blind, and --policies has neither")
	case o.overstate != 0 && !(o.overstate >= 1 && o.overstate <= 1000):
		return fmt.Errorf("--overstate is %g, and must be 0, or from 1 to 1000", o.overstate)
	case o.variants < 0 || o.variants > mostVariants:
		return fmt.Errorf("--variants is %d, and must be from 0 to %d", o.variants, mostVariants)
	case len(o.bounds) > 0 && (o.bounds[0] < 1 || !slices.IsSorted(o.bounds)):
		return fmt.Errorf("--sizes is %v: sizes must be at least 1 and grow", o.bounds)
	}
	if o.with != "" {
		if _, err := exec.LookPath(o.with); err != nil {
			return fmt.Errorf("--with: %w", err)
		}
	}
	return nil
}

// play gives a row of the table: the figures of jobs under a policy.
type play struct {
	name string
	of   func(jobs []workload.Job) (figures.Figures, error)
}

// plays returns the plays that the flags select. onCluster holds the options of --live; nil without that flag.
func (o *options) plays(nodes workload.Nodes, bounds figures.Bounds, onCluster *live.Options) []play {
	var plays []play
	add := func(name string, run func(jobs []workload.Job) (workload.Outcome, error)) {
		plays = append(plays, play{name, func(jobs []workload.Job) (figures.Figures, error) {
			outcome, err := run(jobs)
			if err != nil {
				return figures.Figures{}, err
			}
			if o.liars == 0 {
				return figures.Of(outcome, jobs, nodes, bounds), nil
			}
			lying, liars, err := workload.Lie(jobs, o.liars)
			if err != nil {
				return figures.Figures{}, err
			}
			beside, err := run(lying)
			if err != nil {
				return figures.Figures{}, err
			}
			f := figures.Of(beside, lying, nodes, bounds)
			f.Liars = figures.LiarsOf(beside, outcome, jobs, liars)
			return f, nil
		}})
	}
	for _, name := range o.policies {
		add(name, func(jobs []workload.Job) (workload.Outcome, error) { return o.play(name, jobs, nodes) })
		if o.with != "" && (name == lockstep || name == blind) {
			plays = append(plays, play{name + "@" + filepath.Base(o.with), func(jobs []workload.Job) (figures.Figures, error) {
				return o.playWith(name, jobs, nodes, bounds)
			}})
		}
	}
	if onCluster != nil {
		add(onCluster.Name, func(jobs []workload.Job) (workload.Outcome, error) {
			ctx, stop := interrupt.Context() // so that nothing of the replay stays in the cluster
			defer stop()
			return live.Play(ctx, jobs, nodes, *onCluster)
		})
	}
	return plays
}

// checkLiars returns an error if --liars is out of range, or can't be used with the jobs or another flag.
func (o *options) checkLiars(jobs []workload.Job) error {
	switch {
	case o.liars == 0:
		return nil
	case !(o.liars > 1 && o.liars <= 1000):
		return fmt.Errorf("--liars is %g, and must be 0, or above 1 and at most 1000", o.liars)
	case o.starts:
		return errors.New("--liars can't be used with --expected-starts, which enforces limits")
	}
	for variant := range max(1, o.variants) {
		if _, _, err := workload.Lie(o.variant(jobs, variant), o.liars); err != nil {
			return fmt.Errorf("--liars: %w (in a CSV file, --columns says which column has the owner)", err)
		}
	}
	return nil
}

// variant returns a variant of the jobs, or the jobs themselves if the flags ask for no variants. Variants of two seeds
// have nothing in common.
func (o *options) variant(jobs []workload.Job, number int) []workload.Job {
	if o.variants > 0 {
		seed := (o.seed-1)*mostVariants + uint64(number) + 1
		jobs = workload.Nudged(workload.Weeks(jobs, seed), seed)
	}
	if o.with != "" { // The other build gets a file, which has no smaller times.
		jobs = workload.Rounded(jobs)
	}
	return jobs
}

// mostVariants is how many variants may be played.
const mostVariants = 100

// write writes the files that flags ask for.
func (o *options) write(title string, all []figures.Figures) error {
	if o.json != "" {
		data, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			err = os.WriteFile(o.json, append(data, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing --json: %w", err)
		}
	}
	if o.html != "" {
		var b bytes.Buffer
		err := page.Write(&b, title, all)
		if err == nil {
			err = os.WriteFile(o.html, b.Bytes(), 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing --html: %w", err)
		}
	}
	return nil
}

// play plays jobs by a policy, in memory.
func (o *options) play(name string, jobs []workload.Job, nodes workload.Nodes) (workload.Outcome, error) {
	if name == lockstep || name == blind {
		args := cmp.Or(o.args, machine.DefaultArgs(o.starts))
		return machine.Play(o.t, jobs, nodes, machine.Options{Name: name, Args: args, Blind: name == blind, Enforced: name != blind && o.starts,
			Ended: progressOf(len(jobs), o.progress)})
	}
	return policy.Play(policy.Name(name), jobs, nodes), nil
}

// progressOf returns a function to call when a job has ended. It reports the progress each 5000 jobs: plays of fewer jobs
// are over soon.
func progressOf(jobs int, to io.Writer) func() {
	ended := 0
	return func() {
		if ended++; ended%5000 == 0 {
			fmt.Fprintf(to, "  %d of %d jobs have ended\n", ended, jobs)
		}
	}
}
