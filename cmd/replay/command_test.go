// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
)

// run runs the command with flags, and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	cmd := newCommand(t)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestAStrangersFileGivesTheTableWithOneCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.swf")
	const text = "; MaxNodes: 4\n; MaxProcs: 4\n1 0 0 600 4 -1 -1 4 900 -1 1 1\n2 60 0 60 1 -1 -1 1 120 -1 1 2\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "--trace", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 jobs on 4 nodes", "\nlockstep ", "\nfifo ", "\ngreedy ", "\neasy ", "\neasy-true ", "9m"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

// swfFile writes a file in the Standard Workload Format, and returns its name.
func swfFile(t *testing.T, name, text string) string {
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestACompressedFileIsRead(t *testing.T) {
	const text = "\ufeff; MaxNodes: 4\n1 0 0 600 4 -1 -1 4 900 -1 1 1\n"
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := writer.Write([]byte(text))
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"machine.swf": text, "machine.SWF.gz": compressed.String()} {
		out, err := run(t, "--trace", swfFile(t, name, content), "--policies", "fifo")
		if err != nil || !strings.Contains(out, "1 job on 4 nodes") {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
}

func TestItIsSaidWhichJobsAreLeftOut(t *testing.T) {
	const cancelled, large = "1 0 0 -1 4 -1 -1 4 900 -1 5 1\n", "2 0 0 600 9 -1 -1 9 900 -1 1 1\n"
	out, err := run(t, "--policies", "fifo", "--trace", swfFile(t, "machine.swf", "; MaxNodes: 4\n3 0 0 600 4 -1 -1 4 900 -1 1 1\n"+cancelled+large))
	if want := "1 job on 4 nodes of up to 1 unit, load 0.00; left out: 1 that did not run or need no units, 1 larger than the cluster\n"; err != nil || !strings.HasPrefix(out, want) {
		t.Errorf("%v:\n%s", err, out)
	}
	_, err = run(t, "--trace", swfFile(t, "machine.swf", "; MaxNodes: 4\n"+cancelled+large))
	if want := "no job to play; left out: 1 that did not run or need no units, 1 larger"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without a job to play: %v", err)
	}
}

// TestLimitsAreEnforcedOnAllPolicies: the first job would run for hours, and has a limit of ten minutes.
func TestLimitsAreEnforcedOnAllPolicies(t *testing.T) {
	out, err := run(t, "--expected-starts", "--policies", "lockstep,fifo", "--trace", swfFile(t, "machine.swf",
		"; MaxNodes: 4\n1 0 0 10000 4 -1 -1 4 600 -1 1 1\n2 10 0 100 4 -1 -1 4 600 -1 1 2\n"))
	if err != nil || !strings.Contains(out, "fifo      > 2   2     0s        9m") || strings.Contains(out, "2h") {
		t.Errorf("%v, and the second job should wait for 9m50s under both policies:\n%s", err, out)
	}
}

func TestTheTableIsPrintedAlsoIfAFileCantBeWritten(t *testing.T) {
	out, err := run(t, "--generate", "training", "--jobs", "9", "--policies", "fifo", "--json", filepath.Join(t.TempDir(), "nowhere", "figures.json"))
	if err == nil || !strings.Contains(err.Error(), "writing --json") || !strings.Contains(out, "\nfifo ") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestTheSeedDrawsTheVariants(t *testing.T) {
	var trace strings.Builder
	trace.WriteString("; MaxNodes: 4\n")
	for i := range 100 {
		fmt.Fprintf(&trace, "%d %d 0 600 %d -1 -1 -1 900 -1 1 1\n", i, i*20000, 1+i%4)
	}
	file, tables := swfFile(t, "machine.swf", trace.String()), map[string]bool{}
	for _, seed := range []string{"1", "1", "2"} {
		out, err := run(t, "--trace", file, "--policies", "fifo", "--variants", "1", "--seed", seed)
		if err != nil {
			t.Fatal(err)
		}
		tables[out] = true
	}
	if len(tables) != 2 {
		t.Errorf("seeds 1, 1 and 2 draw %d different plays", len(tables))
	}
}

func TestItIsShownHowLongOthersWaitBesideLiars(t *testing.T) {
	out, err := run(t, strings.Fields("--generate training --nodes 10x8 --jobs 300 --seed 2 --overstate 1 --liars 10 --policies greedy,easy")...)
	if err != nil {
		t.Fatal(err)
	}
	ratios := map[string]string{}
	_, table, _ := strings.Cut(out, "WITHOUT LIES")
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) == 7 {
			ratios[words[0]] = words[6]
		}
	}
	if ratios["greedy"] != "1.00" || ratios["easy"] == "" || ratios["easy"] == "1.00" {
		t.Errorf("ratios %v: limits, and so lies, are nothing to greedy and something to easy:\n%s", ratios, out)
	}
}

// TestAMachineThatIsTooLargeIsNamed: the header of the file says how large it is.
func TestAMachineThatIsTooLargeIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.swf")
	if err := os.WriteFile(file, []byte("; MaxNodes: 1000000000000\n1 0 0 600 4 -1 -1 4 900 -1 1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "--trace", file); err == nil || !strings.Contains(err.Error(), "MaxNodes and MaxProcs say 1000000000000 nodes of 1 units: there must be 1 to 200000") {
		t.Errorf("error %v", err)
	}
}

// TestAnotherBuildPlaysTheSameWorkload: this test is the other build, too.
func TestAnotherBuildPlaysTheSameWorkload(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("#!/bin/sh\nREPLAY_ARGS=\"$*\" exec "+own+" -test.run='^TestBeTheOtherBuild$'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(t.TempDir(), "figures.json")
	if _, err := run(t, "--generate", "training", "--nodes", "2x4", "--jobs", "12", "--policies", "lockstep", "--with", other, "--json", written); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	var all []figures.Figures
	if err := json.Unmarshal(text, &all); err != nil || len(all) != 2 {
		t.Fatalf("%v, figures of %d policies, want 2", err, len(all))
	}
	all[0].Policy += "@other"
	if diff := cmp.Diff(all[0], all[1], cmpopts.IgnoreFields(figures.Figures{}, "CPU")); diff != "" {
		t.Errorf("figures of this build and of the same build as another one:\n%s", diff)
	}
}

// TestBeTheOtherBuild runs the command with the arguments that TestAnotherBuildPlaysTheSameWorkload gives it in a process of its own.
func TestBeTheOtherBuild(t *testing.T) {
	args := os.Getenv("REPLAY_ARGS")
	if args == "" {
		return // It is no test of its own.
	}
	if _, err := run(t, strings.Fields(args)...); err != nil {
		t.Fatal(err)
	}
}

func TestABadFlagIsNamedWithWhatIsAllowed(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "one of --trace and --generate is required"},
		{"--generate training --nodes 8", "--nodes is \"8\": want COUNTxUNITS"},
		{"--generate training --nodes 300000x8", "--nodes is \"300000x8\": 300000 nodes of 8 units: there must be 1 to 200000 nodes of 1 to 10000 units"},
		{"--generate training --load NaN", "--load is NaN, and must be above 0 and at most 2"},
		{"--generate training --load 3", "--load is 3, and must be above 0 and at most 2"},
		{"--generate training --jobs 0", "--jobs is 0, and must be from 1 to 1000000"},
		{"--generate cats", "must be capability or training"},
		{"--generate training --policies best", "--policies has \"best\", and policies are lockstep, lockstep-blind, fifo"},
		{"--generate training --policies lockstep,best", "--policies has \"best\""},
		{"--generate training --policies=", "at least one policy is needed"},
		{"--generate training --policies fifo --with x", "--policies has neither"},
		{"--generate training --with nosuchprogram", "--with: exec: \"nosuchprogram\""},
		{"--generate training --nodes nodes.json", "or the name of a file that exists"},
		{"--generate training --sizes 8,1", "sizes must be at least 1 and grow"},
		{"--generate training --overstate 0.5", "--overstate is 0.5, and must be 0, or from 1 to 1000"},
		{"--generate training --overstate 20000", "--overstate is 20000, and must be 0, or from 1 to 1000"},
		{"--generate training --liars 1", "--liars is 1, and must be 0, or above 1 and at most 1000"},
		{"--generate training --liars 10 --expected-starts", "--liars can't be used with --expected-starts"},
		{"--generate training --jobs 2 --liars 10", "at least three are needed"},
		{"--generate training --variants 101", "--variants is 101, and must be from 0 to 100"},
		{"--generate training --live fast", "--live is \"fast\", and must be from 1x to 100000x"},
		{"--generate training --live 100x", "--live needs --kubeconfig"},
		{"--generate training --live 100x --podgroups pods", "--podgroups is \"pods\", and must be one of none, scheduling.lockstep.dev"},
		{"--trace x.txt", "opening --trace"},
		{"--trace command_test.go --format csv --nodes 2x2", "--columns: a CSV file needs it"},
		{"--generate training --nodes .", "reading .: "},
		{"--trace command_test.go --nodes 2x2", "--format is \"go\", and must be swf, csv, sacct, objects or replay"},
	} {
		if _, err := run(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got error %v, want one with %q", tt.args, err, tt.want)
		}
	}
}
