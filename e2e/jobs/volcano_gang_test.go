//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestJobsAreGangs(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"a Job that loses its minimum is Pending until it has it again": func(t *testing.T) {
			room := cluster.Room(t, 4)
			j := inRoom(t, room, "{tasks: [{name: a, replicas: 2, @∞/1}]}").Passes(pending, running)
			room.Cordon(true)
			j.Kill("j-a-0").Passes(pending)
			room.Cordon(false)
			j.Passes(running).Counts(tally{Running: 2})
		},
		"a Job without room for all waits as a whole, is told why, and runs when there is room": func(t *testing.T) {
			room := cluster.Room(t, 3)
			j := inRoom(t, room, "{tasks: [{name: a, replicas: 4, @∞/1}]}").Passes(pending)
			j.Tells(corev1.EventTypeWarning, "PodGroupPending", "").Never(running)
			j.Is("say why", func(s *batchv1alpha1.JobStatus) bool { return s.State.Reason == "PodGroupPending" && s.Pending == 4 })
			wantUnbound(t, j)
			room.AddNode(1, nil)
			j.Passes(running).Counts(tally{Running: 4})
		},
		"Pods above the minimum wait for room while the Job runs": func(t *testing.T) {
			inRoom(t, cluster.Room(t, 3), "{minAvailable: 2, tasks: [{name: a, replicas: 4, @∞/1}]}").
				Passes(running).Counts(tally{Running: 3, Pending: 1})
		},
		"Jobs that each fill the room all get their turn": func(t *testing.T) {
			room := cluster.Room(t, 4)
			namespace := cluster.Namespace(t)
			var all []*testbed.VolcanoJob
			for _, name := range []string{"one", "two", "three"} {
				all = append(all, cluster.CreateVolcanoJob(t, namespace, name, "{minAvailable: 2, tasks: [{name: a, replicas: 4, @3→0/1}]}", room))
			}
			for _, j := range all {
				j.Passes(running, completed).Counts(tally{Succeeded: 4})
			}
		},
		"the second of two Jobs that each fill the room waits without a Pod on a node": func(t *testing.T) {
			room := cluster.Room(t, 4)
			first := inRoom(t, room, "{tasks: [{name: a, replicas: 4, @∞/1}]}").Passes(running)
			second := cluster.CreateVolcanoJob(t, first.Namespace, "second", "{tasks: [{name: a, replicas: 4, @∞/1}]}", room)
			second.Passes(pending).Tells(corev1.EventTypeWarning, "PodGroupPending", "")
			wantUnbound(t, second)
			first.Stays(time.Second)
		},
		"a Job whose Pods have a scheduling gate waits for it": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, @∞{schedulingGates: [{name: tests.lockstep.dev/gate}]}}]}").Passes(pending)
			j.HasPods("j-a-0", "j-a-1").Stays(time.Second)
			openGates(t, j, "j-a-0", "j-a-1")
			j.Passes(running)
		},
		"classes and schedulers of templates come before those of the Job": func(t *testing.T) {
			high, low := makeClass(t, 1000), makeClass(t, 10)
			j := given(t, fmt.Sprintf("{priorityClassName: %s, tasks: [{name: a, replicas: 1, @∞}, {name: b, replicas: 1, @∞{priorityClassName: %s, schedulerName: another}}]}", high, low))
			for pod, want := range map[string][2]string{"j-a-0": {high, testbed.GangScheduler}, "j-b-0": {low, "another"}} {
				spec := j.Pod(pod).Spec
				if got := [2]string{spec.PriorityClassName, spec.SchedulerName}; got != want {
					t.Errorf("Pod %s has class and scheduler %v, want %v", pod, got, want)
				}
			}
			groups, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(j.Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(groups.Items) != 1 || groups.Items[0].Spec.PriorityClassName != high {
				t.Errorf("the gangs are %+v, want one of class %s", groups.Items, high)
			}
		},
		"where there is room for the minimum only, the Pods of the highest class are in it": func(t *testing.T) {
			high, room := makeClass(t, 1000), cluster.Room(t, 1)
			j := inRoom(t, room, fmt.Sprintf("{minAvailable: 3, tasks: [{name: executor, replicas: 5, @∞/1}, {name: driver, replicas: 1, @∞/1{priorityClassName: %s}}]}", high))
			// All are there before there is room for three.
			j.Passes(pending).Counts(tally{Pending: 6})
			room.AddNode(2, nil)
			j.Passes(running).Counts(tally{Running: 3, Pending: 3})
			if node := j.Pod("j-driver-0").Spec.NodeName; node == "" {
				t.Error("the driver waits while executors run")
			}
		},
		"what a Job has above its minimum goes to a Job of a higher class": func(t *testing.T) {
			room, high := cluster.Room(t, 6), makeClass(t, 1000)
			first := inRoom(t, room, "{minAvailable: 3, tasks: [{name: a, replicas: 6, @∞/1}]}").Passes(running).Counts(tally{Running: 6})
			second := cluster.CreateVolcanoJob(t, first.Namespace, "second", fmt.Sprintf("{priorityClassName: %s, tasks: [{name: a, replicas: 3, @∞/1}]}", high), room)
			second.Passes(running).Counts(tally{Running: 3})
			first.Counts(tally{Running: 3, Pending: 3})
			if phase := first.Status().State.Phase; phase != running {
				t.Errorf("the first Job is %s, want Running", phase)
			}
		},
		"a Job that has to be in one rack waits, one that only should be runs": func(t *testing.T) {
			room := cluster.Room(t)
			room.AddNode(2, map[string]string{rackLabel: "one"})
			room.AddNode(2, map[string]string{rackLabel: "two"})
			const spec = "{networkTopology: {mode: %s, highestTierAllowed: 1}, tasks: [{name: a, replicas: 3, @∞/1}]}"
			hard := inRoom(t, room, fmt.Sprintf(spec, "hard")).Passes(pending)
			hard.Tells(corev1.EventTypeWarning, "PodGroupPending", rackLabel)
			wantUnbound(t, hard)
			cluster.CreateVolcanoJob(t, hard.Namespace, "soft", fmt.Sprintf(spec, "soft"), room).Passes(running)
		},
		"a tier that no label stands for keeps a Job waiting where it is hard": func(t *testing.T) {
			const spec = "{networkTopology: {mode: %s, highestTierAllowed: 7}, tasks: [{name: a, replicas: 2, @∞}]}"
			hard := given(t, fmt.Sprintf(spec, "hard")).Passes(pending).Tells(corev1.EventTypeWarning, "TopologyUnmapped", "7").HasPods()
			cluster.CreateVolcanoJob(t, hard.Namespace, "soft", fmt.Sprintf(spec, "soft"), nil).
				Tells(corev1.EventTypeWarning, "TopologyUnmapped", "7").Passes(running)
		},
	})
}

func TestTasksThatDependOnOthers(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"start when the others are ready, also where the minimum counts them all": func(t *testing.T) {
			j := given(t, "{minAvailable: 3, tasks: [{name: master, replicas: 1, dependsOn: {name: [worker]}, @3→0}, {name: worker, replicas: 2, @∞}]}")
			j.Passes(pending, running)
			made := j.Pod("j-master-0").CreationTimestamp
			for _, name := range []string{"j-worker-0", "j-worker-1"} {
				for _, condition := range j.Pod(name).Status.Conditions {
					if condition.Type == corev1.ContainersReady && (condition.Status != corev1.ConditionTrue || made.Before(&condition.LastTransitionTime)) {
						t.Errorf("Pod j-master-0 was made at %s, and %s is ready since %s", made, name, condition.LastTransitionTime)
					}
				}
			}
		},
		"start when one of them is, if any will do": func(t *testing.T) {
			j := inRoom(t, cluster.Room(t, 2), "{minAvailable: 1, tasks: [{name: a, replicas: 1, @∞/100}, {name: b, replicas: 1, @1→0{schedulingGates: [{name: tests.lockstep.dev/gate}]}}, {name: c, replicas: 1, dependsOn: {name: [a, b], iteration: any}, @∞}]}")
			j.HasPods("j-a-0", "j-b-0")
			testbed.Consistently(t, "no Pod of c before b has run", 2*time.Second, func(context.Context) (bool, string, error) {
				return j.Pods()["j-c-0"] == nil, "Pod j-c-0", nil
			})
			openGates(t, j, "j-b-0")
			j.HasPods("j-a-0", "j-b-0", "j-c-0").Counts(tally{Pending: 1, Running: 1, Succeeded: 1})
		},
		"wait for all of them otherwise": func(t *testing.T) {
			j := inRoom(t, cluster.Room(t, 2), "{minAvailable: 1, tasks: [{name: a, replicas: 1, @∞/100}, {name: b, replicas: 1, @1→0}, {name: c, replicas: 1, dependsOn: {name: [a, b]}, @∞}]}")
			j.Is("count a success", func(s *batchv1alpha1.JobStatus) bool { return s.Succeeded == 1 })
			testbed.Consistently(t, "no Pod of c", 2*time.Second, func(context.Context) (bool, string, error) {
				return j.Pods()["j-c-0"] == nil, "Pod j-c-0", nil
			})
		},
	})
}

// wantUnbound wants no Pod of a Job to have a node.
func wantUnbound(t *testing.T, j *testbed.VolcanoJob) {
	t.Helper()
	for name, pod := range j.Pods() {
		if pod.Spec.NodeName != "" {
			t.Errorf("Pod %s is on %s, want none of the gang on a node", name, pod.Spec.NodeName)
		}
	}
}

// openGates lets Pods be scheduled.
func openGates(t *testing.T, j *testbed.VolcanoJob, pods ...string) {
	t.Helper()
	for _, name := range pods {
		if _, err := cluster.Kube.CoreV1().Pods(j.Namespace).Patch(t.Context(), name, types.JSONPatchType,
			[]byte(`[{"op": "remove", "path": "/spec/schedulingGates"}]`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// makeClass makes a PriorityClass for one test.
func makeClass(t *testing.T, value int32) string {
	t.Helper()
	client := cluster.Kube.SchedulingV1().PriorityClasses()
	class, err := client.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-volcano-"}, Value: value}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return class.Name
}
