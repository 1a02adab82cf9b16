//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade replaces Lockstep by an earlier build of itself, and back, while jobs run.
package upgrade

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// previous is where hack/previous.sh has put an earlier build.
var previous = flag.String("previous", "../../bin/previous", "folder of an earlier build, with its CRDs in crds")

// cluster has no programs of Lockstep. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "none"}, func(_ context.Context, c *testbed.Cluster) error {
		cluster = c
		if _, err := os.Stat(filepath.Join(*previous, "commit")); err != nil {
			return fmt.Errorf("there is no earlier build, hack/previous.sh makes it: %w", err)
		}
		return nil
	}))
}

// build is a version of both programs and of their CRDs.
type build struct {
	name, controller, scheduler, crds string
}

// builds are the earlier one and the one of today.
func builds(t *testing.T) (earlier, today build) {
	t.Helper()
	folder, err := filepath.Abs(*previous)
	if err != nil {
		t.Fatal(err)
	}
	return build{"the earlier build", filepath.Join(folder, "lockstep-controller"), filepath.Join(folder, "lockstep-scheduler"), filepath.Join(folder, "crds")},
		build{"today's build", "lockstep-controller", "lockstep-scheduler", "../../manifests/crds"}
}

// running are the programs of a build that run.
type running struct {
	controller *testbed.Controller
	scheduler  *localenv.Process
}

// start starts the programs of a build, which stand by until they lead.
func (b build) start(t *testing.T) *running {
	t.Helper()
	return start(t, b, b)
}

// start starts the controller of one build and the scheduler of another, which stand by until they lead.
func start(t *testing.T, controllerOf, schedulerOf build) *running {
	t.Helper()
	r := &running{controller: cluster.StartController(t, localenv.ControllerOptions{Config: "leaderElection: {enabled: true}\n", Program: controllerOf.controller})}
	var err error
	// Not the context of the test: what the test cleans up may need it.
	if r.scheduler, err = cluster.StartSchedulerWith(context.WithoutCancel(t.Context()), localenv.SchedulerOptions{Elected: true, Program: schedulerOf.scheduler}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.scheduler.Kill()
		if t.Failed() {
			t.Logf("log of the scheduler of %s:\n%s", schedulerOf.name, r.scheduler.LogTail(4000))
		}
	})
	r.controller.WaitReady(t)
	return r
}

// stop asks the programs to end, as a kubelet does, and waits until they have.
func (r *running) stop(t *testing.T) {
	t.Helper()
	if err := r.controller.Terminate(t); err != nil {
		t.Errorf("a controller that is asked to end: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	// kube-scheduler ends with an error when it has given its lease up.
	if err := r.scheduler.Terminate(ctx); ctx.Err() != nil {
		t.Errorf("a scheduler that is asked to end: %v", err)
	}
}

// applyCRDs is the command by which docs/install.md upgrades them.
func (b build) applyCRDs(t *testing.T) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", b.crds); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestUpgradeAndRollbackDisturbNoJob goes from an earlier build to today's, back, and forward again, as
// docs/install.md says: CRDs first on the way up, and never on the way down. Jobs run, retry and wait all the time.
func TestUpgradeAndRollbackDisturbNoJob(t *testing.T) {
	earlier, today := builds(t)
	earlier.applyCRDs(t)
	t.Cleanup(func() {
		// The CRDs that others find are today's, whatever happens.
		if out, err := cluster.Kubectl(context.WithoutCancel(t.Context()), "apply", "--server-side", "--force-conflicts", "-k", today.crds); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	namespace := cluster.Namespace(t)
	programs := earlier.start(t)
	recording := cluster.Record(t, namespace)

	gang := jobs.MakeFramework("gang").Gang().Role("worker", 4, jobs.RunForever().CPU("1")).Obj()
	plain := jobs.MakeFramework("plain").Role("worker", 3, jobs.RunForever()).Obj()
	retries := jobs.MakeFramework("retries").Retry(false, 1).Role("worker", 2, jobs.RunFor(time.Second, 1).InFirstAttempts(1)).Obj()
	waits := jobs.MakeFramework("waits").Gang().Role("worker", 3, jobs.RunForever().CPU("8")).Obj()
	// Its first attempt fails, and its second one runs on.
	remembers := jobs.MakeFramework("remembers").Retry(false, 1).
		Role("fails", 1, jobs.RunFor(time.Second, 1).InFirstAttempts(1)).Role("stays", 2, jobs.RunForever()).Obj()
	create(t, namespace, gang, plain, retries)
	waitRunning(t, namespace, "gang", 4)
	waitRunning(t, namespace, "plain", 3)
	waitSucceeded(t, namespace, "retries")
	create(t, namespace, waits) // it takes all three nodes
	cluster.WaitFramework(t, namespace, "waits", "have its Pods", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.State == frameworkv1.FrameworkAttemptPreparing
	})
	testbed.Eventually(t, "the Pods of waits", func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.PodsOf(ctx, namespace, "waits")
		return len(pods) == 3, fmt.Sprintf("%d of 3", len(pods)), err
	})
	before := podsOf(t, namespace)

	// Who forgets the CRDs is told, before anything is lost.
	refused := cluster.StartController(t, localenv.ControllerOptions{Config: "crdEstablishedCheckTimeoutSec: 10\n", Program: today.controller})
	refused.WaitLog(t, "is older than this program: it has no field ")
	refused.Kill()

	for i, step := range []struct {
		name string
		to   build
		up   bool
	}{{"upgrade", today, true}, {"rollback", earlier, false}, {"upgradeagain", today, true}} {
		t.Logf("%s: to %s", step.name, step.to.name)
		if step.up {
			step.to.applyCRDs(t)
		}
		next := step.to.start(t)
		programs.stop(t)
		programs = next
		// What is new goes all its way, so what is old has been looked at, too.
		name := fmt.Sprintf("after%d", i)
		create(t, namespace, jobs.MakeFramework(name).Gang().Retry(false, 1).Role("worker", 2, jobs.RunFor(time.Second, 1).InFirstAttempts(1)).Obj())
		waitSucceeded(t, namespace, name)
		if diff := cmp.Diff(before, podsOf(t, namespace)); diff != "" {
			t.Errorf("%s: Pods have changed (-before, +after):\n%s", step.name, diff)
		}
		for _, name := range []string{"gang", "plain", "waits"} {
			fw := cluster.WaitFramework(t, namespace, name, "be there", func(fw *frameworkv1.Framework) bool { return fw.Status != nil })
			if fw.Status.AttemptStatus.ID != 0 {
				t.Errorf("%s: %s is in attempt %d", step.name, name, fw.Status.AttemptStatus.ID)
			}
		}
		switch i {
		case 0:
			create(t, namespace, remembers)
			cluster.WaitFramework(t, namespace, "remembers", "run its second attempt", func(fw *frameworkv1.Framework) bool {
				return fw.Status != nil && fw.Status.AttemptStatus.ID == 1 && fw.Status.Tasks != nil && fw.Status.Tasks.Running >= 2 && len(fw.Status.History) == 1
			})
		case 1:
			// The earlier build reads a status of today's, goes on with it, and forgets what it does not know where it writes:
			// the history. Where it has nothing to write nothing is lost.
			if after0 := waitSucceeded(t, namespace, "after0"); len(after0.Status.History) != 2 {
				t.Errorf("after0 has %d records in its history, want those of its 2 attempts", len(after0.Status.History))
			}
			stop(t, namespace, "remembers")
			stopped := cluster.WaitFrameworkState(t, namespace, "remembers", frameworkv1.FrameworkCompleted)
			if code, id := stopped.Status.AttemptStatus.CompletionStatus.Code, stopped.Status.AttemptStatus.ID; code != -210 || id != 1 {
				t.Errorf("it ended with code %d in attempt %d, want -210 in attempt 1", code, id)
			}
			if len(stopped.Status.History) != 0 {
				t.Errorf("the documents say that the earlier build drops the history, and it has kept %d records", len(stopped.Status.History))
			}
		}
	}

	// What waited all the time is placed once there is room.
	foreground := metav1.DeletePropagationForeground
	if err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Delete(t.Context(), "gang", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitFrameworkGone(t, namespace, "gang")
	stop(t, namespace, "plain")
	cluster.WaitFrameworkState(t, namespace, "plain", frameworkv1.FrameworkCompleted)
	waitRunning(t, namespace, "waits", 3) // all three nodes are free now
	recording.Check(t)
}

// TestEitherProgramGoesWithTheOtherOfAnotherBuild has the controller of one build and the scheduler of another run
// gangs, with the CRDs of today, and kubectl-lockstep of today show them.
func TestEitherProgramGoesWithTheOtherOfAnotherBuild(t *testing.T) {
	earlier, today := builds(t)
	for name, of := range map[string]struct{ controller, scheduler build }{
		"an earlier controller": {earlier, today},
		"an earlier scheduler":  {today, earlier},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			programs := start(t, of.controller, of.scheduler)
			recording := cluster.Record(t, namespace)
			// The second gang waits for the room of the first one.
			create(t, namespace, jobs.MakeFramework("first").Gang().Role("worker", 3, jobs.RunForever().CPU("8")).Obj())
			waitRunning(t, namespace, "first", 3)
			create(t, namespace, jobs.MakeFramework("second").Gang().Retry(false, 1).Role("worker", 2, jobs.RunFor(time.Second, 1).InFirstAttempts(1).CPU("8")).Obj())
			cluster.WaitGroupTold(t, namespace, "second-attempt", "")
			cluster.WaitFrameworkState(t, namespace, "second", frameworkv1.FrameworkAttemptPreparing)
			shows(t, namespace, "second", "Preparing")
			stop(t, namespace, "first")
			waitSucceeded(t, namespace, "second")
			shows(t, namespace, "second", "Succeeded")
			recording.Check(t)
			programs.stop(t)
		})
	}
}

// shows holds that kubectl-lockstep shows a Framework in a state.
func shows(t *testing.T, namespace, name, state string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "kubectl-lockstep", "get", name, "-n", namespace, "--kubeconfig", cluster.Kubeconfig).CombinedOutput()
	if err != nil || !strings.Contains(string(out), state) {
		t.Errorf("kubectl-lockstep does not show that %s is %s (%v):\n%s", name, state, err, out)
	}
}

func create(t *testing.T, namespace string, frameworks ...*frameworkv1.Framework) {
	t.Helper()
	for _, fw := range frameworks {
		cluster.CreateFramework(t, namespace, fw)
	}
}

func stop(t *testing.T, namespace, name string) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), "patch", "framework", name, "-n", namespace, "--type=json", "-p", `[{"op": "replace", "path": "/spec/executionType", "value": "Stop"}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func waitRunning(t *testing.T, namespace, name string, tasks int32) {
	t.Helper()
	cluster.WaitFramework(t, namespace, name, "run with all tasks", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == tasks
	})
}

// waitSucceeded waits until a Framework whose first attempt fails has succeeded in its second.
func waitSucceeded(t *testing.T, namespace, name string) *frameworkv1.Framework {
	t.Helper()
	return cluster.WaitFramework(t, namespace, name, "succeed in its second attempt", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.State == frameworkv1.FrameworkCompleted &&
			fw.Status.AttemptStatus.ID == 1 && fw.Status.AttemptStatus.CompletionStatus.Code == 0
	})
}

// podsOf are the Pods of the jobs that are there all the time.
func podsOf(t *testing.T, namespace string) map[string]types.UID {
	t.Helper()
	pods := map[string]types.UID{}
	for _, framework := range []string{"gang", "plain", "waits"} {
		found, err := cluster.PodsOf(t.Context(), namespace, framework)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range found {
			pods[pod.Name] = pod.UID
		}
	}
	return pods
}
