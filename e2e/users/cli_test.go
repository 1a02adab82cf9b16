//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// user is somebody in front of a shell, with a namespace.
type user struct {
	t                     *testing.T
	namespace, kubeconfig string
}

func someone(t *testing.T) user {
	t.Helper()
	return user{t, cluster.Namespace(t), cluster.Kubeconfig}
}

// said is what a command printed, and its exit code.
type said struct {
	out, err string
	code     int
}

func (u user) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(u.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig, "TERM=xterm")
	return cmd
}

// types runs kubectl-lockstep in the user's namespace.
func (u user) types(args ...string) said {
	u.t.Helper()
	return u.runs(u.command("kubectl-lockstep", append(args, "-n", u.namespace)...))
}

func (u user) runs(cmd *exec.Cmd) said {
	u.t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatal(err)
	}
	return said{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// sees has the test fail unless a command exited with a code and printed these texts.
func (u user) sees(s said, code int, texts ...string) {
	u.t.Helper()
	if s.code != code {
		u.t.Errorf("exit code %d, want %d\n%s%s", s.code, code, s.out, s.err)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.err, text) {
			u.t.Errorf("%q is not in\n%s%s", text, s.out, s.err)
		}
	}
}

func (u user) creates(b *jobs.FrameworkBuilder) *frameworkv1.Framework {
	u.t.Helper()
	return cluster.CreateFramework(u.t, u.namespace, b.Obj())
}

// measures has the cluster serve metrics, in the form of a metrics server: what CPU Pods of training use.
func (u user) measures(cpu map[string]string) {
	u.t.Helper()
	if out, err := cluster.KubectlApply(u.t.Context(), u.namespace, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pods.metrics.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, of a test"}
spec:
  group: metrics.k8s.io
  names: {plural: pods, singular: pod, kind: PodMetrics}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`); err != nil {
		u.t.Fatal(err, out)
	}
	if out, err := cluster.Kubectl(u.t.Context(), "wait", "--for=condition=Established", "crd/pods.metrics.k8s.io"); err != nil {
		u.t.Fatal(err, out)
	}
	for pod, used := range cpu {
		if err := cluster.ApplyOnceServed(u.t.Context(), u.namespace, fmt.Sprintf(`
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {name: %s, labels: {%s: training}}
window: 15s
containers: [{name: main, usage: {cpu: %s, memory: 1Mi}}]
`, pod, frameworkv1.KeyFrameworkName, used)); err != nil {
			u.t.Fatal(err)
		}
	}
}

func TestAJobIsSeenAndSteeredFromItsStartToItsEnd(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.sees(u.types("get"), 0, "No jobs found in namespace "+u.namespace)
	u.creates(jobs.MakeFramework("training").Gang().Retry(true, 0).Execution(frameworkv1.ExecutionCreate).Role("worker", 2, jobs.RunForever()))
	u.sees(u.types("retry", "training"), 1, "never started", "hint: `start` starts it")
	u.sees(u.types("start", "training", "--dry-run=server"), 0, "framework/training started (server dry run)")
	u.sees(u.types("wait", "training", "--for=running", "--timeout=1s"), 5, "timed out after 1s waiting for training to be Running")
	u.sees(u.types("start", "training"), 0, "framework/training started\n")
	u.sees(u.types("wait", "training", "--for=running", "--timeout=1m"), 0, "framework/training Running")
	cluster.WaitFramework(t, u.namespace, "training", "run", func(fw *frameworkv1.Framework) bool { return fw.Status.Tasks != nil && fw.Status.Tasks.Running == 2 })
	u.sees(u.types("get"), 0, "NAME", "training", "Framework", "Running", "2/2")
	u.sees(u.types("get", "-o", "name"), 0, "framework.frameworkcontroller.microsoft.com/training")
	u.sees(u.types("get", "training", "-o", "jsonpath={.spec.taskRoles[0].name}"), 0, "worker")
	u.sees(u.types("get", "-l", "team=a"), 0, "No jobs found")
	cluster.WaitPodGroup(t, u.namespace, "training-attempt", "run", func(group *schedulingv1alpha1.PodGroup) bool {
		return group.Status.Phase == schedulingv1alpha1.PodGroupRunning
	})
	u.sees(u.types("describe", "training"), 0, "gang training-attempt: Running", "├─ 0   Running   sim-", "All tasks are placed together, or none.", "Conditions")
	u.sees(u.types("top", "training"), 0, "ROLE", "worker", "serves no metrics")
	u.measures(map[string]string{"training-worker-0": "250m", "training-worker-1": "1500m"})
	cpu := regexp.MustCompile(`worker +2 +cpu +\S+ +1750m\n`)
	if top := u.types("top", "training"); top.code != 0 || !cpu.MatchString(top.out) || strings.Contains(top.err, "metrics") {
		t.Errorf("2 Pods that use 250m and 1500m show as\n%s%s", top.out, top.err)
	}
	u.sees(u.types("history", "training"), 0, "No attempt of training is over yet.")
	u.sees(u.types("logs", "training", "worker/7"), 3, "training has no task worker/7", "its role worker has 2")
	u.sees(u.types("logs", "training", "--attempt", "4"), 3, "there is no attempt 4 of training")

	u.sees(u.types("scale", "training", "worker=3"), 0, "framework/training scaled")
	cluster.WaitFramework(t, u.namespace, "training", "have three tasks", func(fw *frameworkv1.Framework) bool { return fw.Status.Tasks.Running == 3 })
	u.sees(u.types("retry", "training"), 0, "attempt 0 ended, to be retried")
	cluster.WaitFramework(t, u.namespace, "training", "run again", func(fw *frameworkv1.Framework) bool {
		return fw.Status.AttemptStatus.ID == 1 && fw.Status.Tasks.Running == 3
	})
	u.sees(u.types("stop", "training"), 0, "framework/training stopped")
	u.sees(u.types("wait", "training", "--for=Succeeded", "--timeout=1m"), 6, "has ended, and is Stopped, not Succeeded")
	u.sees(u.types("scale", "training", "worker=1"), 1, "it is not rescaled any more")
	u.sees(u.types("start", "training"), 1, "is never started again")
	u.sees(u.types("logs", "training"), 3, "the Pods are gone")
	u.sees(u.types("retry", "training"), 0, "framework/training recreated")
	u.sees(u.types("wait", "training", "--for=Running", "--timeout=1m"), 0)
	u.sees(u.types("delete", "training", "--dry-run"), 0, "framework/training deleted (dry run)")
	u.sees(u.types("delete", "training"), 0, "framework/training deleted\n")
	u.sees(u.types("get", "training"), 3, "not found", "hint: is it in another namespace?")
	u.sees(u.types("wait", "training", "--for=deleted"), 0, "deleted")
}

func TestWrongCommandsAreToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("once").Role("worker", 1, jobs.RunForever()))
	u.sees(u.types("wait", "once", "--for=Running", "--timeout=1m"), 0)
	u.sees(u.types("retry", "once"), 1, "retryPolicy has no retry left", "hint: raise spec.retryPolicy.maxRetryCount")
	u.sees(u.types("scale", "once", "worker=many"), 2, `"worker=many" is not ROLE=N`)
	u.sees(u.types("scale", "once", "ps=1"), 3, "once has no role ps", "its roles are worker")
	u.sees(u.types("wait", "once", "--for=Flying"), 2, `unknown state "Flying" for --for`, "Succeeded")
	u.sees(u.types("get", "once", "-A"), 2, "don't go together")
	u.sees(u.types("get", "-w", "-o", "json"), 2, "-w and -o json don't go together")
	u.sees(u.types("why", "nobody"), 3, "not found")
	u.sees(u.types("get", "--nonsense"), 2, "unknown flag")
	u.sees(u.types("get", "-o", "nonsense"), 2, "-o takes")
	u.sees(u.types("stop"), 2, "a name or a selector is needed")
	u.sees(u.types("stop", "once", "--dry-run=maybe"), 2, "and must be none, client or server")
	u.sees(u.types("logs", "once", "nobody"), 3, "once has no role nobody")
	u.sees(u.types("fly"), 2, "unknown command")
}

// TestTheUsersRightsAreAllItHas shows what a reader without the right to read Pods sees.
func TestTheUsersRightsAreAllItHas(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("secret").Role("worker", 1, jobs.RunForever()))
	u.sees(u.types("wait", "secret", "--for=Running", "--timeout=1m"), 0)
	for _, args := range [][]string{
		{"create", "serviceaccount", "reader"},
		{"create", "role", "reader", "--verb=get,list,watch", "--resource=frameworks.frameworkcontroller.microsoft.com"},
		{"create", "rolebinding", "reader", "--role=reader", "--serviceaccount=" + u.namespace + ":reader"},
	} {
		if out, err := cluster.Kubectl(t.Context(), append(args, "-n", u.namespace)...); err != nil {
			t.Fatal(out)
		}
	}
	as := "--as=system:serviceaccount:" + u.namespace + ":reader"
	testbed.Eventually(t, "the role to count", func(context.Context) (bool, string, error) {
		s := u.types("get", "secret", as)
		return s.code == 0, s.err, nil
	})
	u.sees(u.types("describe", "secret", as), 0, "Running", "! Pods can't be shown: you may not read them", "! Events can't be shown")
	u.sees(u.types("get", as), 0, "secret")
	u.sees(u.types("stop", "secret", as), 4, "forbidden", "hint: this program has your own rights")
	u.sees(u.types("get", "-A", as), 4, "forbidden")
}

func TestKubectlFindsTheProgramAndItsCompletion(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("plugin").Execution(frameworkv1.ExecutionCreate).Role("worker", 1, jobs.RunForever()))
	kubectl := filepath.Join(cluster.Bin(), "kubectl")
	u.sees(u.runs(u.command(kubectl, "lockstep", "get", "-n", u.namespace)), 0, "plugin")
	u.sees(u.runs(u.command(kubectl, "framework", "get", "-n", u.namespace)), 0, "plugin")
	u.sees(u.runs(u.command("kubectl-framework", "--help")), 0, "kubectl framework [command]")
	u.sees(u.runs(u.command(kubectl, "__complete", "lockstep", "-n", u.namespace, "stop", "pl")), 0, "plugin\n")
	u.sees(u.runs(u.command("kubectl-lockstep", "__complete", "-n", u.namespace, "scale", "plugin", "w")), 0, "worker=\n")
}

// terminal is what a person sees in one.
type terminal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(p)
}

func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// starts starts a command in a terminal of 24 lines and a number of columns: what is typed, and what is seen.
func starts(t *testing.T, cmd *exec.Cmd, columns uint16) (keyboard io.Writer, shown *terminal) {
	t.Helper()
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	shown = &terminal{}
	go func() { _, _ = io.Copy(shown, screen) }()
	return screen, shown
}

func TestALiveTreeIsRedrawnInPlace(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("live").Role("worker", 2, jobs.RunForever()))
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("NO_COLOR=%v", plain), func(t *testing.T) {
			cmd := u.command("kubectl-lockstep", "get", "live", "-w", "-n", u.namespace)
			if plain {
				cmd.Env = append(cmd.Env, "NO_COLOR=1")
			}
			screen, shown := starts(t, cmd, 80)
			running := "\x1b[32mRunning\x1b[0m"
			if plain {
				running = "Running"
			}
			testbed.Eventually(t, "the tree to be redrawn with two running tasks", func(context.Context) (bool, string, error) {
				text := shown.text()
				return strings.Contains(text, "2/2 running") && strings.Contains(text, running) && strings.Contains(text, "\x1b[4A"), text, nil
			})
			if plain && strings.Contains(shown.text(), "\x1b[32m") {
				t.Errorf("colours in spite of NO_COLOR: %q", shown.text())
			}
			// Ctrl-C, as typed.
			if _, err := screen.Write([]byte{3}); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("after Ctrl-C: %v\n%s", err, shown.text())
			}
		})
	}
}

func TestWithoutATerminalEachChangeIsALine(t *testing.T) {
	t.Parallel()
	u := someone(t)
	u.creates(jobs.MakeFramework("lines").Role("worker", 1, jobs.RunFor(2*time.Second, 7)))
	cmd := u.command("kubectl-lockstep", "get", "lines", "-w", "-n", u.namespace)
	var shown terminal
	cmd.Stdout, cmd.Stderr = &shown, &shown
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, "the end to be told", func(context.Context) (bool, string, error) {
		return strings.Contains(shown.text(), "lines Failed attempt 0"), shown.text(), nil
	})
	cluster.WaitFrameworkState(t, u.namespace, "lines", frameworkv1.FrameworkCompleted)
	u.sees(u.types("history", "lines"), 0, "Failed", "worker/0 exited with 7", "none")
	u.sees(u.types("delete", "lines"), 0)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the deletion: %v", err)
	}
	text := shown.text()
	for _, want := range []string{"lines worker/0 Failed on sim-", "code 7", "lines was deleted."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("escape sequences without a terminal: %q", text)
	}
}
