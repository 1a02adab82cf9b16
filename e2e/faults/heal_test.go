//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/e2e/testbed/faultproxy"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// trial is a fault and how it is made.
type trial struct {
	name string
	// fault is that of the proxies; the zero value lets all requests through.
	fault faultproxy.Fault
	// kill is a program of the cluster that is killed when the fault begins, and started again by
	// the cluster.
	kill string
	// endsWatches ends all watches twice a second.
	endsWatches bool
	// gangsOnly leaves out the Pods that are placed one by one. kube-scheduler takes a binding whose
	// reply is lost for failed, and may give the room of such a Pod to another: kubernetes/kubernetes#100140.
	gangsOnly bool
	// always is tried without -all-faults, too.
	always bool
}

var trials = []trial{
	{name: "each answer 500 ms late", fault: faultproxy.Late(500 * time.Millisecond)},
	{name: "409 to every second change", fault: faultproxy.Conflicts(2)},
	{name: "429 with Retry-After: 1 to every second request", fault: faultproxy.TooMany(2, 1)},
	{name: "500 to every second request", fault: faultproxy.Errors(2)},
	{name: "503 to all requests", fault: faultproxy.Unavailable()},
	{name: "every second write done and its reply lost", fault: faultproxy.LostReplies(2), gangsOnly: true, always: true},
	{name: "all watches ended twice a second", endsWatches: true, always: true},
	{name: "410 to all watches", fault: faultproxy.ExpiredVersions(), always: true},
	{name: "both programs cut off", fault: faultproxy.Cut()},
	{name: "API server killed", kill: "kube-apiserver"},
	{name: "etcd killed", kill: "etcd"},
}

// Bounds that each fault keeps.
const (
	// healsIn is how long after a fault all Frameworks may take to come to their ends. Without
	// a fault it is about five seconds.
	healsIn = time.Minute
	// mostRequests is how many requests a second both programs may send while a fault lasts. They
	// have some 40 watches, which is 80 requests a second if all of them end twice a second.
	mostRequests = 150
)

// TestFaultsHeal breaks the requests of controller and scheduler while Frameworks begin, run and
// retry. When the fault is over each comes to the end that its spec implies, and a gang for
// which there is no room waits whole.
func TestFaultsHeal(t *testing.T) {
	lasts := 3 * time.Second
	if *all {
		lasts = 15 * time.Second
	}
	controllerProxy, controllerConfig := proxyOf(t, "controller")
	schedulerProxy, schedulerConfig := proxyOf(t, "scheduler")
	cluster.StartController(t, localenv.ControllerOptions{Kubeconfig: controllerConfig}).WaitReady(t)
	cluster.SchedulerFor(t, localenv.SchedulerOptions{Kubeconfig: schedulerConfig})
	proxies := []*faultproxy.Proxy{controllerProxy, schedulerProxy}
	for _, trial := range trials {
		if !trial.always && !*all {
			continue
		}
		t.Run(trial.name, func(t *testing.T) { try(t, trial, proxies, lasts) })
	}
}

func try(t *testing.T, trial trial, proxies []*faultproxy.Proxy, lasts time.Duration) {
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	// It runs on half of the cores all the time, and must not notice anything.
	resident := jobs.MakeFramework("resident").Gang().Role("worker", 6, jobs.RunForever().CPU("1")).Obj()
	create(t, namespace, resident)
	before := cluster.WaitFrameworkState(t, namespace, resident.Name, frameworkv1.FrameworkAttemptRunning)

	begin(t, trial, proxies)
	asked, began := requests(proxies), time.Now()
	wants := map[string]want{}
	for i := range 8 {
		name := fmt.Sprintf("life%d", i)
		fw, want := life(name, i, time.Second, "1")
		if trial.gangsOnly && fw.Spec.Gang == nil {
			fw.Spec.Gang = resident.Spec.Gang.DeepCopy()
		}
		wants[name] = want
		create(t, namespace, fw)
	}
	for time.Since(began) < lasts {
		if trial.endsWatches {
			for _, proxy := range proxies {
				proxy.EndWatches()
			}
		}
		testbed.PauseFor(t, 500*time.Millisecond) // The requests of this time are counted.
	}
	rate := float64(requests(proxies)-asked) / time.Since(began).Seconds()
	healed := time.Now()
	for _, proxy := range proxies {
		proxy.Heal()
	}
	for name, want := range wants {
		done := cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
		if got := endOf(done, want.pods); got != want {
			t.Errorf("%s ended as %+v, want %+v", name, got, want)
		}
	}
	took := time.Since(healed)
	measured(t, "faults", fmt.Sprintf("%s | %.1f s | %.0f", trial.name, took.Seconds(), rate))
	if took > healsIn {
		t.Errorf("healed in %v, want at most %v", took.Round(time.Second), healsIn)
	}
	if rate > mostRequests {
		t.Errorf("%.0f requests a second while the fault lasted, want at most %d", rate, mostRequests)
	}
	tooLarge := jobs.MakeFramework("too-large").Gang().Role("worker", 9, jobs.RunForever().CPU("1")).Obj()
	create(t, namespace, tooLarge)
	testbed.Eventually(t, "the Pods of "+tooLarge.Name, func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.PodsOf(ctx, namespace, tooLarge.Name)
		return len(pods) == 9, fmt.Sprintf("%d of 9 Pods", len(pods)), err
	})
	testbed.Eventually(t, "the scheduler to say that there is no room for it", func(ctx context.Context) (bool, string, error) {
		group, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Get(ctx, frameworkv1.PodGroupName(tooLarge.Name), metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		waits := slices.ContainsFunc(group.Status.Conditions, func(c schedulingv1alpha1.PodGroupCondition) bool {
			return c.Reason == schedulingv1alpha1.ReasonNotEnoughResources
		})
		return waits, fmt.Sprint(group.Status.Conditions), nil
	})
	pods, err := cluster.PodsOf(t.Context(), namespace, tooLarge.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			t.Errorf("%s of the gang that does not fit is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	after := cluster.WaitFrameworkState(t, namespace, resident.Name, frameworkv1.FrameworkAttemptRunning)
	if got, want := *after.Status.AttemptStatus.InstanceUID, *before.Status.AttemptStatus.InstanceUID; got != want {
		t.Errorf("the attempt that ran all the time is %s, and was %s", got, want)
	}
	recording.CheckQuiet(t)
}

// begin begins a fault. A program that is killed has been started again, and the API server answers,
// when it returns.
func begin(t *testing.T, trial trial, proxies []*faultproxy.Proxy) {
	t.Helper()
	if trial.kill != "" {
		if err := cluster.Kill(t.Context(), trial.kill); err != nil {
			t.Fatal(err)
		}
		testbed.Eventually(t, "the API server to answer", func(ctx context.Context) (bool, string, error) {
			_, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks("").List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return false, err.Error(), nil
			}
			return true, "", nil
		})
	}
	for _, proxy := range proxies {
		proxy.Break(trial.fault)
	}
}

func requests(proxies []*faultproxy.Proxy) int {
	sum := 0
	for _, proxy := range proxies {
		sum += proxy.Requests()
	}
	return sum
}

// want is the end that a spec implies: the number of the last attempt and how many tasks succeeded.
// pods is how many Pods it takes.
type want struct {
	attempts, succeeded int32
	pods                int
}

// endOf is the end of a Framework that is completed.
func endOf(fw *frameworkv1.Framework, pods int) want {
	return want{attempts: fw.Status.AttemptStatus.ID, succeeded: fw.Status.Tasks.Succeeded, pods: pods}
}

// life is the i-th of Frameworks of four sorts, and the end that its spec implies.
func life(name string, i int, runs time.Duration, cpu string) (*frameworkv1.Framework, want) {
	ends := []want{{succeeded: 3, pods: 3}, {succeeded: 4, pods: 4}, {attempts: 1, succeeded: 2, pods: 4}, {succeeded: 2, pods: 4}}
	return jobs.MakeLife(name, i, runs, cpu), ends[i%len(ends)]
}

// create creates a Framework, also while the API server is being started.
func create(t *testing.T, namespace string, fw *frameworkv1.Framework) {
	t.Helper()
	testbed.Eventually(t, "to create "+fw.Name, func(ctx context.Context) (bool, string, error) {
		_, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Create(ctx, fw, metav1.CreateOptions{})
		if err != nil {
			return false, err.Error(), nil
		}
		return true, "", nil
	})
}
