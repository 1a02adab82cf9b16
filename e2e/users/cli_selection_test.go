//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestVerbsTakeManyByTheirLabels and leave alone what has another label, or can't be stopped or started any more.
func TestVerbsTakeManyByTheirLabels(t *testing.T) {
	t.Parallel()
	u, other := someone(t), someone(t)
	for _, name := range []string{"a", "b", "c"} {
		u.creates(jobs.MakeFramework(name).Label("sweep", u.namespace).Execution(frameworkv1.ExecutionCreate).Role("worker", 1, jobs.RunForever()))
	}
	u.creates(jobs.MakeFramework("alone").Execution(frameworkv1.ExecutionCreate).Role("worker", 1, jobs.RunForever()))
	other.creates(jobs.MakeFramework("far").Label("sweep", u.namespace).Execution(frameworkv1.ExecutionCreate).Role("worker", 1, jobs.RunForever()))
	sweep := "sweep=" + u.namespace

	u.sees(u.types("start", "a", "b"), 0, "framework/a started\n", "framework/b started\n")
	u.sees(u.types("stop", "c"), 0, "framework/c stopped\n")
	u.sees(u.types("start", "-l", sweep, "--dry-run"), 0, "a is started already.", "b is started already.", "c was stopped")
	u.sees(u.types("stop", "-l", sweep, "-A"), 0, "framework/a stopped in "+u.namespace, "framework/far stopped in "+other.namespace)
	u.sees(u.types("get", "alone"), 0, "NotStarted")
	for _, name := range []string{"a", "b", "c"} {
		u.sees(u.types("wait", name, "--for=Stopped", "--timeout=1m"), 0)
	}
	u.sees(u.types("retry", "-l", sweep), 0, "framework/a recreated", "framework/b recreated", "framework/c recreated")
	u.sees(u.types("stop", "alone", "nobody"), 3, `"nobody" not found`)
	u.sees(u.types("get", "alone"), 0, "NotStarted")
	u.sees(u.types("delete", "-l", sweep), 0, "framework/a deleted\n", "framework/b deleted\n", "framework/c deleted\n")
	u.sees(u.types("delete", "-l", sweep), 0, "No jobs found in namespace "+u.namespace)
	other.sees(other.types("get", "far"), 0, "far")
}

// TestEachVerbRefusesNonsenseInATerminal: as a person types it, with a message, a hint and an exit code that says what
// kind of mistake it was.
func TestEachVerbRefusesNonsenseInATerminal(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("there").Execution(frameworkv1.ExecutionCreate).Role("worker", 1, jobs.RunForever()))
	for _, c := range []struct {
		typed string
		code  int
		text  string
	}{
		{"get nobody", 3, "hint: is it in another namespace?"},
		{"get -l a=b=c", 2, "--selector: "},
		{"get --field-selector a", 2, "--field-selector: "},
		{"get nobody -w", 3, "not found"},
		{"describe", 2, "usage: kubectl lockstep describe NAME"},
		{"describe nobody", 3, "not found"},
		{"history nobody", 3, "not found"},
		{"why", 2, "usage: kubectl lockstep why NAME"},
		{"why tfjob/nobody", 3, "not found"},
		{"why there -o table", 2, "-o takes json and yaml"},
		{"simulate", 2, "either a name or -f is needed"},
		{"simulate -f /nowhere", 2, "no such file"},
		{"simulate there --add-nodes sim-0", 2, "is not NODE=N"},
		{"simulate there", 3, "has no PodGroup"},
		{"simulate there --add-nodes nobody=2", 2, "there is no node"},
		{"queue surplus", 2, "usage: kubectl lockstep queue"},
		{"logs there worker/x", 2, "for example worker/0"},
		{"logs there nobody", 3, "has no role nobody"},
		{"start", 2, "a name or a selector is needed"},
		{"start there -l a=b", 2, "don't go together"},
		{"stop -A", 2, "--all-namespaces needs a selector"},
		{"stop -l a=b=c", 2, "--selector: "},
		{"retry nobody", 3, "not found"},
		{"scale there worker=-1", 2, "is not ROLE=N with N from 0"},
		{"scale there worker=1 worker=2", 2, "role worker is there twice"},
		{"delete nobody", 3, "not found"},
		{"wait there", 2, "--for"},
		{"wait there --for=Flying", 2, "unknown state"},
		{"top nobody", 3, "not found"},
		{"dashboard --port 99999999", 2, "port"},
		{"get --kubeconfig /nowhere", 1, "/nowhere"},
	} {
		cmd := u.command("kubectl-lockstep", append(strings.Fields(c.typed), "-n", u.namespace)...)
		screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
		if err != nil {
			t.Fatal(err)
		}
		var shown terminal
		read := make(chan struct{})
		go func() {
			_, _ = io.Copy(&shown, screen)
			close(read)
		}()
		kill := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		// The end of the program is the end of what it shows.
		<-read
		_ = screen.Close()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(shown.text(), c.text) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", c.typed, code, c.code, c.text, shown.text())
		}
	}
}
