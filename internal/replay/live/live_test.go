// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// simulate plays KWOK and a scheduler that takes one job after the other, until ctx ends: nodes become ready, and a job's Pods get the one
// node when no other Pod has it.
func simulate(ctx context.Context, server *apiserver.Server) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, node := range apiserver.All[corev1.Node](server, "") {
			if len(node.Status.Conditions) == 0 {
				apiserver.Change(server, "", node.Name, func(n *corev1.Node) {
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				})
			}
		}
		pods, groups := apiserver.All[corev1.Pod](server, ""), map[string][]*corev1.Pod{}
		busy := ""
		for _, pod := range pods {
			group := pod.Labels[schedulingv1alpha1.LabelPodGroup]
			groups[group] = append(groups[group], pod)
			if pod.Spec.NodeName != "" {
				busy = group
			}
		}
		for group, members := range groups {
			if busy == "" && len(members) == 2 {
				for _, pod := range members {
					apiserver.Change(server, pod.Namespace, pod.Name, func(p *corev1.Pod) { p.Spec.NodeName = nodeName(0) })
				}
				busy = group
			}
		}
	}, time.Millisecond)
}

func play(t *testing.T, ctx context.Context, server *apiserver.Server, jobs []workload.Job) (workload.Outcome, error) {
	t.Helper()
	simulated, stop := context.WithCancel(t.Context())
	defer stop()
	go simulate(simulated, server)
	return Play(ctx, jobs, workload.Uniform(1, 2), Options{
		Name: "live", Config: server.Process("replay").Config(), SchedulerName: "any", PodGroups: schedulingv1alpha1.GroupName, Speed: 1000,
	})
}

// nothingIsLeft fails the test if a namespace or a node of the replay is left. With a namespace goes what is in it.
func nothingIsLeft(t *testing.T, server *apiserver.Server) {
	t.Helper()
	if namespaces, nodes := len(apiserver.All[corev1.Namespace](server, "")), len(apiserver.All[corev1.Node](server, "")); namespaces+nodes > 0 {
		t.Errorf("%d namespaces and %d nodes are left", namespaces, nodes)
	}
}

func TestJobsRunOnTheClusterForTheirTime(t *testing.T) {
	server := apiserver.New(t)
	jobs := []workload.Job{
		{Name: "first", Runtime: 5 * time.Minute, Limit: 10 * time.Minute, Pods: 2, Units: 1},
		{Name: "second", Owner: "other", Submit: time.Second, Runtime: time.Minute, Pods: 2, Units: 1},
	}
	outcome, err := play(t, t.Context(), server, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Runs) != 2 {
		t.Fatalf("%d jobs ran", len(outcome.Runs))
	}
	first, second := outcome.Runs[0], outcome.Runs[1]
	if second.Start < first.End || len(second.Nodes) != 2 {
		t.Errorf("the jobs ran as %+v and %+v, want one after the other", first, second)
	}
	for _, run := range outcome.Runs {
		if run.Start < jobs[run.Job].Submit || run.End-run.Start != jobs[run.Job].Runtime {
			t.Errorf("job %d ran as %+v", run.Job, run)
		}
	}
	nothingIsLeft(t, server)
}

func TestAReplayThatIsInterruptedLeavesNothing(t *testing.T) {
	server := apiserver.New(t)
	ctx, interrupt := context.WithCancel(t.Context())
	server.SetObserver(func(w *apiserver.Written) {
		if w.Resource == "pods" && !w.Created() && !w.Removed() {
			interrupt()
		}
	})
	_, err := play(t, ctx, server, []workload.Job{{Name: "long", Runtime: 100 * time.Hour, Pods: 2, Units: 1}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was interrupted", err)
	}
	nothingIsLeft(t, server)
}

func TestAClusterThatRefusesEndsTheReplay(t *testing.T) {
	server := apiserver.New(t)
	server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Resource == "pods" && r.Verb == "create" {
			return apiserver.Fault{Refusal: apiserver.WebhookDenied("policy", "no GPUs here")}
		}
		return apiserver.Fault{}
	})
	_, err := play(t, t.Context(), server, []workload.Job{{Name: "refused", Runtime: time.Hour, Pods: 2, Units: 1}})
	if err == nil || !strings.Contains(err.Error(), "creating a Pod: ") || !strings.Contains(err.Error(), "no GPUs here") {
		t.Errorf("error %v, want the refusal", err)
	}
	nothingIsLeft(t, server)
}
