//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// stage are Pods that a tool makes together.
type stage struct {
	name        string
	pods, cores int
	// ends says that the next stage is made when these have succeeded. Otherwise it is when they have a node.
	ends bool
}

// stagedTool is a tool that makes some Pods of a group only after others, and counts all in the minimum of the group.
type stagedTool struct {
	owner  string
	stages [2]stage
	// asks says that the group asks for what all of them take.
	asks bool
	// links are the ways in which its Pods name their group, by what the groups are of.
	links map[string]link
}

// link is how Pods name their group.
type link struct {
	dialect dialect.Dialect
	label   string
	// annotation is in the place of a label.
	annotation string
}

var (
	linkOfSchedulerPlugins = link{dialect: dialect.SchedulerPlugins, label: "scheduling.x-k8s.io/pod-group"}
	linkOfVolcano          = link{dialect: dialect.Volcano, annotation: "scheduling.k8s.io/group-name"}
)

// stagedTools fill the 8 cores of a room with all Pods of a job.
var stagedTools = map[string]stagedTool{
	"Trainer, an initializer before the nodes": {
		owner: "TrainJob", stages: [2]stage{{name: "dataset-initializer", pods: 1, cores: 1, ends: true}, {name: "node", pods: 2, cores: 3}}, asks: true,
		links: map[string]link{"scheduler-plugins": linkOfSchedulerPlugins, "Volcano": linkOfVolcano},
	},
	"Trainer, an MPI launcher after the nodes": {
		owner: "TrainJob", stages: [2]stage{{name: "node", pods: 7, cores: 1}, {name: "launcher", pods: 1, cores: 1}}, asks: true,
		links: map[string]link{"scheduler-plugins": linkOfSchedulerPlugins, "Volcano": linkOfVolcano},
	},
	"LeaderWorkerSet, whose workers are made when the leader has a node": {
		owner: "Pod", stages: [2]stage{{name: "leader", pods: 1, cores: 1}, {name: "worker", pods: 7, cores: 1}}, asks: true,
		links: map[string]link{"Volcano": linkOfVolcano},
	},
	"RBG, a role that depends on another, which does not say how much they take": {
		owner: "RoleBasedGroup", stages: [2]stage{{name: "prefill", pods: 1, cores: 1}, {name: "decode", pods: 7, cores: 1}},
		links: map[string]link{"scheduler-plugins": {dialect: dialect.SchedulerPlugins, label: "pod-group.scheduling.sigs.k8s.io/name"}, "Volcano": linkOfVolcano},
	},
}

// TestAJobInStagesHasItsRoom: the annotation on its Pods has the first stage run alone. The scheduler keeps the rest of
// what the group asks for, for the next stage, also between the end of the first stage and the first Pod of the next one.
// The scheduler places the next stage as a whole.
func TestAJobInStagesHasItsRoom(t *testing.T) {
	cluster := reserving.parallel(t)
	for name, tool := range stagedTools {
		for of, link := range tool.links {
			t.Run(name+", of "+of, func(t *testing.T) {
				t.Parallel()
				room := cluster.Room(t, 4, 4)
				j := &staged{t: t, cluster: cluster, room: room, tool: tool, link: link, namespace: cluster.Namespace(t)}
				j.makeGroup()
				j.run()
			})
		}
	}
}

// staged is a job in stages, with a namespace and a room of its own.
type staged struct {
	t         *testing.T
	cluster   *testCluster
	room      *testbed.Room
	tool      stagedTool
	link      link
	namespace string
}

const nameOfGroup = "job"

func (j *staged) groups() dynamic.ResourceInterface {
	return j.cluster.objects.Resource(j.link.dialect.Resource()).Namespace(j.namespace)
}

// makeGroup makes the group, which counts the Pods of all stages.
func (j *staged) makeGroup() {
	j.t.Helper()
	pods, cores := 0, 0
	for _, s := range j.tool.stages {
		pods, cores = pods+s.pods, cores+s.pods*s.cores
	}
	spec := map[string]any{"minMember": int64(pods)}
	if j.tool.asks {
		spec["minResources"] = map[string]any{"cpu": fmt.Sprint(cores)}
	}
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	group.SetGroupVersionKind(j.link.dialect.Kind())
	group.SetName(nameOfGroup)
	group.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: j.tool.owner, Name: nameOfGroup, UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)}})
	if _, err := j.groups().Create(j.t.Context(), group, metav1.CreateOptions{}); err != nil {
		j.t.Fatal(err)
	}
}

// make makes the Pods of a stage.
func (j *staged) make(s stage) {
	j.t.Helper()
	for i := range s.pods {
		j.cluster.CreatePod(j.t, j.namespace, testbed.MakePod(fmt.Sprintf("%s-%d", s.name, i), testbed.WithCores(s.cores), j.room.Confine, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{"scheduling.lockstep.dev/staged": "true"}
			if j.link.label != "" {
				pod.Labels = map[string]string{j.link.label: nameOfGroup}
			} else {
				pod.Annotations[j.link.annotation] = nameOfGroup
			}
			if s.ends {
				maps.Copy(pod.Annotations, map[string]string{jobs.AnnotationRunSeconds: "3", jobs.AnnotationExitCode: "0"})
			}
		}))
	}
}

// placed returns how many Pods of a stage have a node, and the names of all Pods that have one.
func (j *staged) placed(ctx context.Context, name string) (n int, all []string, err error) {
	all, err = j.cluster.Placed(ctx, j.namespace)
	for _, pod := range all {
		if strings.HasPrefix(pod, name+"-") {
			n++
		}
	}
	return n, all, err
}

// waitPlaced waits until all Pods of a stage have a node.
func (j *staged) waitPlaced(s stage) {
	j.t.Helper()
	testbed.Eventually(j.t, "the stage "+s.name+" to be placed", func(ctx context.Context) (bool, string, error) {
		n, all, err := j.placed(ctx, s.name)
		return n == s.pods, fmt.Sprint(all), err
	})
}

// waitEvent waits for an event on objects of a kind of the namespace that has a text.
func (j *staged) waitEvent(namespace, kind, text string) {
	j.t.Helper()
	j.cluster.WaitMessage(j.t, namespace, "involvedObject.kind="+kind, text)
}

func (j *staged) run() {
	j.t.Helper()
	first, next := j.tool.stages[0], j.tool.stages[1]
	j.make(first)
	j.waitPlaced(first)
	j.tryOther(first, next)
	if next.pods > 1 {
		j.expectWhole(next)
	} else {
		j.make(next)
	}
	j.waitPlaced(next)
	testbed.Eventually(j.t, "the group to say that it runs", func(ctx context.Context) (bool, string, error) {
		group, err := j.groups().Get(ctx, nameOfGroup, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		phase, _, err := unstructured.NestedString(group.Object, "status", "phase")
		return phase == dialect.PhaseRunning, phase, err
	})
}

// tryOther creates an ordinary Pod that requests as much as a Pod of the next stage, while the first stage runs and when it
// has ended. If the scheduler keeps that room, the ordinary Pod gets no node.
func (j *staged) tryOther(first, next stage) {
	j.t.Helper()
	others := j.cluster.Namespace(j.t)
	j.cluster.CreatePod(j.t, others, testbed.MakePod("other", testbed.WithCores(next.cores), j.room.Confine))
	if !j.tool.asks {
		j.cluster.WaitPlaced(j.t, others, 1)
		j.cluster.DeletePod(j.t, others, "other")
		return
	}
	j.waitEvent(others, "Pod", "node(s) had resources that are reserved for a pod group")
	if first.ends {
		testbed.Eventually(j.t, "the stage "+first.name+" to end", func(ctx context.Context) (bool, string, error) {
			pods, err := j.cluster.Kube.CoreV1().Pods(j.namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
			if err != nil {
				return false, "", err
			}
			return len(pods.Items) == first.pods, fmt.Sprint(len(pods.Items)), nil
		})
	}
	testbed.Consistently(j.t, "the other Pod to leave the room alone", 3*time.Second, func(ctx context.Context) (bool, string, error) {
		names, err := j.cluster.Placed(ctx, others)
		return len(names) == 0, fmt.Sprint(names), err
	})
	j.cluster.DeletePod(j.t, others, "other")
}

// expectWhole makes the Pods of a stage while the room is closed, and opens the room step by step. While there is room for
// a part of the stage, none of its Pods is placed.
func (j *staged) expectWhole(s stage) {
	j.t.Helper()
	j.room.Cordon(true)
	j.make(s)
	j.waitSeen(s) // A Pod that comes before the others is a stage of its own.
	j.room.CordonNode(0, false)
	j.waitEvent(j.namespace, "PodGroup", "there is room for ")
	testbed.Consistently(j.t, "none of the stage "+s.name+" to be placed", 3*time.Second, func(ctx context.Context) (bool, string, error) {
		n, all, err := j.placed(ctx, s.name)
		return n == 0, fmt.Sprint(all), err
	})
	j.room.CordonNode(1, false)
}

// waitSeen waits until the scheduler has reported of each Pod of a stage that the Pod has no node.
func (j *staged) waitSeen(s stage) {
	j.t.Helper()
	testbed.Eventually(j.t, "the scheduler to see all Pods of the stage "+s.name, func(ctx context.Context) (bool, string, error) {
		pods, err := j.cluster.Kube.CoreV1().Pods(j.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		seen := 0
		for i := range pods.Items {
			waits := slices.ContainsFunc(pods.Items[i].Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
			})
			if waits && strings.HasPrefix(pods.Items[i].Name, s.name+"-") {
				seen++
			}
		}
		return seen == s.pods, fmt.Sprint(seen), nil
	})
}
