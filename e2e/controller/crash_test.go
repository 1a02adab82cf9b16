//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

var seed = flag.Uint64("seed", 0, "seed of the moments at which the controller is killed and Frameworks are rescaled; 0 draws one")

// end is what a completed Framework shows of its last attempt and its retries.
type end struct {
	Code                       frameworkv1.CompletionCode
	Attempt, Total, Accounted  int32
	TasksSucceeded, TasksTotal int32
}

func endOf(fw *frameworkv1.Framework) end {
	return end{
		Code:           fw.Status.AttemptStatus.CompletionStatus.Code,
		Attempt:        fw.Status.AttemptStatus.ID,
		Total:          fw.Status.RetryPolicyStatus.TotalRetriedCount,
		Accounted:      fw.Status.RetryPolicyStatus.AccountableRetriedCount,
		TasksSucceeded: fw.Status.Tasks.Succeeded, TasksTotal: fw.Status.Tasks.Total,
	}
}

// life is a Framework and the end that its spec implies.
type life struct {
	framework *frameworkv1.Framework
	want      end
	// rescaled Frameworks run on; they have to be stopped.
	rescaled bool
}

// scaledTo is how many workers a rescaled Framework has in the end.
const scaledTo = 3

// lives are n Frameworks of all sorts.
func lives(n int) []life {
	all := make([]life, n)
	for i := range all {
		name := fmt.Sprintf("life%d", i)
		switch i % 6 {
		case 0:
			all[i] = life{
				framework: jobs.MakeFramework(name).Role("worker", 3, jobs.RunFor(time.Second, 0)).Obj(),
				want:      end{TasksSucceeded: 3, TasksTotal: 3},
			}
		case 1: // attempts that are retried for free
			all[i] = life{
				framework: jobs.MakeFramework(name).Retry(true, 0).
					Role("worker", 3, jobs.RunFor(time.Second, 200).InFirstAttempts(2)).Obj(),
				want: end{Attempt: 2, Total: 2, TasksSucceeded: 3, TasksTotal: 3},
			}
		case 2: // an attempt whose retry counts
			all[i] = life{
				framework: jobs.MakeFramework(name).Retry(false, 1).Role("worker", 2, jobs.RunFor(time.Second, 9)).Obj(),
				want:      end{Code: 9, Attempt: 1, Total: 1, Accounted: 1, TasksTotal: 2},
			}
		case 3:
			all[i] = life{
				framework: jobs.MakeFramework(name).Gang().Role("worker", 4, jobs.RunFor(time.Second, 0)).Obj(),
				want:      end{TasksSucceeded: 4, TasksTotal: 4},
			}
		case 4: // tasks that are retried
			all[i] = life{
				framework: jobs.MakeFramework(name).
					Role("worker", 3, jobs.RunFor(time.Second, 5).Retry(false, 2).InFirstTaskAttempts(2)).Obj(),
				want: end{TasksSucceeded: 3, TasksTotal: 3},
			}
		case 5:
			all[i] = life{
				framework: jobs.MakeFramework(name).Role("worker", 2, jobs.RunForever()).Obj(),
				want:      end{Code: frameworkv1.CodeStopFrameworkRequested, TasksTotal: scaledTo},
				rescaled:  true,
			}
		}
	}
	return all
}

// TestControllerCrashes kills the controller at random moments while Frameworks
// are created, retried, rescaled and completed. Each must come to the end that
// its spec implies, as if nothing had happened, without any Pod left over, and
// with the guarantees kept all the way.
func TestControllerCrashes(t *testing.T) {
	const (
		frameworks = 50
		kills      = 20
	)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to have the same moments again: -seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	killed := 0

	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	all := lives(frameworks)
	var users sync.WaitGroup
	for _, life := range all {
		moments := rand.New(rand.NewPCG(*seed, random.Uint64()))
		users.Go(func() { use(t, namespace, life, moments) })
	}
	// On a slow machine fewer kills are as good: each takes longer.
	for killing := time.Now(); killed < kills && time.Since(killing) < time.Minute; killed++ {
		controller := cluster.StartController(t, localenv.ControllerOptions{})
		// A third dies while it starts.
		if random.IntN(3) > 0 {
			controller.WaitReady(t)
		}
		pause(t, random, 2*time.Second)
		controller.Kill()
	}
	t.Logf("%d of %d Frameworks were completed after %d kills", completed(t, namespace), frameworks, killed)
	cluster.StartController(t, localenv.ControllerOptions{})
	users.Wait()

	for _, life := range all {
		done := cluster.WaitFrameworkState(t, namespace, life.framework.Name, frameworkv1.FrameworkCompleted)
		if got := endOf(done); got != life.want {
			t.Errorf("%s ended as %+v, want %+v", done.Name, got, life.want)
		}
	}
	recording.CheckQuiet(t)
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 0 {
		t.Errorf("%d Pods are left", len(pods.Items))
	}
	t.Logf("%d Pods were made", recording.Pods())
}

// use is the user of a Framework. Failures are told without ending the test,
// because it has a goroutine of its own.
func use(t *testing.T, namespace string, life life, random *rand.Rand) {
	name := life.framework.Name
	frameworks := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace)
	pause(t, random, 20*time.Second)
	if _, err := frameworks.Create(t.Context(), life.framework, metav1.CreateOptions{}); err != nil {
		t.Error(err)
		return
	}
	if !life.rescaled {
		return
	}
	patch := func(path string, value any) {
		patch := fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %v}]`, path, value)
		if _, err := frameworks.Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("rescaling %s: %v", name, err)
		}
	}
	for range 8 {
		pause(t, random, 3*time.Second)
		patch("/spec/taskRoles/0/taskNumber", random.IntN(7))
	}
	patch("/spec/taskRoles/0/taskNumber", scaledTo)
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	err := localenv.Await(ctx, fmt.Sprintf("%s to run %d workers", name, scaledTo), func(ctx context.Context) (bool, string, error) {
		fw, err := frameworks.Get(ctx, name, metav1.GetOptions{})
		if err != nil || fw.Status == nil || fw.Status.Tasks == nil {
			return false, "", err
		}
		tasks := fw.Status.Tasks
		return fw.Status.ObservedGeneration == fw.Generation && tasks.Total == scaledTo && tasks.Running == scaledTo, localenv.DescribeFramework(fw), nil
	})
	if err != nil {
		t.Error(err)
	}
	patch("/spec/executionType", `"Stop"`)
}

// pause waits for a random time below most: the moment is what is tested.
func pause(t *testing.T, random *rand.Rand, most time.Duration) {
	select {
	case <-time.After(time.Duration(random.Int64N(int64(most)))):
	case <-t.Context().Done():
	}
}

func completed(t *testing.T, namespace string) int {
	t.Helper()
	list, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, fw := range list.Items {
		if fw.Status != nil && fw.Status.State == frameworkv1.FrameworkCompleted {
			n++
		}
	}
	return n
}
