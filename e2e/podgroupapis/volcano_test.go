//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestATrainingOperatorCreatesPodsOnceItMay: it makes the group, waits until that is in the phase Inqueue, and
// deletes it after the end.
func TestATrainingOperatorCreatesPodsOnceItMay(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "tj", ofVolcano)
	j.makeGroup("TFJob", map[string]any{"minMember": int64(3), "queue": "default", "minResources": map[string]any{"cpu": "3"}}, nil)
	j.waitPhase("Inqueue")
	j.pod("tj-worker-0", "worker", endsAfter(3, 0))
	j.pod("tj-worker-1", "worker", endsAfter(3, 0))
	j.waitStatus("NotEnoughTasks")
	j.nobodyIsPlaced()
	j.pod("tj-worker-2", "worker", endsAfter(3, 0))
	j.waitPlaced("tj-worker-0", "tj-worker-1", "tj-worker-2")
	j.waitEvent("PodGroup", "Scheduled", "pod group is ready")
	j.waitPhase("Completed")
	j.check()
	j.deleteGroup()
}

// TestAGroupIsLetInAtOnce: its operator makes no Pod before. The API server writes times in whole seconds, so of several
// groups that wait for less than a second, the scheduler writes one in the second in which it was made. On a busy machine
// that takes more groups; where each group waits for a second, no number is enough.
func TestAGroupIsLetInAtOnce(t *testing.T) {
	t.Parallel()
	const most = 40
	var took []time.Duration
	for i := 0; len(took) == 0 || slices.Min(took) > 0; i++ {
		if i == most {
			t.Fatalf("the groups were let in after %v, want one within a second", took)
		}
		j := newVolcanoTool(t, fmt.Sprintf("tj-%d", i), ofVolcano)
		j.makeGroup("TFJob", map[string]any{"minMember": int64(3)}, nil)
		group := j.waitPhase("Inqueue")
		fields := group.GetManagedFields()
		i := slices.IndexFunc(fields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == dialect.Writer })
		if i < 0 {
			t.Fatalf("%s has not written the phase: %v", dialect.Writer, fields)
		}
		took = append(took, fields[i].Time.Sub(group.GetCreationTimestamp().Time))
		j.deleteGroup()
	}
}

// TestAWorkerIsReplaced: the group must not wait again meanwhile, as the operator would create no Pod.
func TestAWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "tj", ofVolcano)
	phases := j.watchPhases()
	j.makeGroup("TFJob", map[string]any{"minMember": int64(2), "queue": "default"}, nil)
	j.waitPhase("Inqueue")
	j.pod("tj-worker-0", "worker")
	j.pod("tj-worker-1", "worker")
	j.waitPhase("Running")
	j.deletePod("tj-worker-1")
	j.waitPhase("Inqueue")
	j.pod("tj-worker-1", "worker")
	j.waitPlaced("tj-worker-0", "tj-worker-1")
	j.waitPhase("Running")
	testbed.Eventually(t, "all phases to be seen, from Running to Running", func(context.Context) (bool, string, error) {
		seen := phases()
		runs := slices.Index(seen, "Running")
		return runs >= 0 && slices.Contains(seen[runs+1:], "Running"), fmt.Sprintf("%q", seen), nil
	})
	if seen := phases(); slices.Contains(seen, "Pending") {
		t.Errorf("the phases were %q: the operator creates no Pods while it is Pending", seen)
	}
}

// TestATrainingJobIsSuspended: the operator deletes its group and its Pods, and makes the same again when
// it goes on. What is written of one is never written to the other, or to none.
func TestATrainingJobIsSuspended(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "tj", ofVolcano)
	spec := map[string]any{"minMember": int64(2)}
	for range 2 {
		j.makeGroup("PyTorchJob", spec, nil)
		j.waitPhase("Inqueue")
		j.pod("tj-master-0", "master")
		j.pod("tj-worker-0", "worker")
		j.waitPlaced("tj-master-0", "tj-worker-0")
		j.waitPhase("Running")
		j.deletePod("tj-master-0")
		j.deletePod("tj-worker-0")
		j.deleteGroup()
		testbed.Consistently(t, "nobody to make the group again", 3*time.Second, func(ctx context.Context) (bool, string, error) {
			_, err := cluster.volcanoGroups(j.namespace).Get(ctx, j.name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return false, "", err
			}
			return err != nil, "it is there again", nil
		})
	}
}

// TestATrainingJobAsksForMoreThanItHas, until somebody changes that.
func TestATrainingJobAsksForMoreThanItHas(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "tj", ofVolcano)
	j.makeGroup("TFJob", map[string]any{"minMember": int64(10), "queue": "default"}, nil)
	j.waitPhase("Inqueue")
	j.pod("tj-worker-0", "worker")
	j.waitStatus("NotEnoughTasks")
	j.waitEvent("PodGroup", "Unschedulable", "10/1 tasks in gang unschedulable: 1 of at least 10 members exist")
	j.put(map[string]any{"minMember": int64(1), "queue": "default"})
	j.waitPlaced("tj-worker-0")
	j.waitPhase("Running")
	j.check()
}

// TestThePodsOfOtherToolsComeAtOnce: they don't wait for a phase. Each group is placed when its last member
// comes, and says how far it is.
func TestThePodsOfOtherToolsComeAtOnce(t *testing.T) {
	for name, tool := range map[string]struct {
		owner, scheduler string
		spec, status     map[string]any
	}{
		"mpi-operator": {owner: "MPIJob", scheduler: ofVolcano, spec: map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "3"}}},
		"Trainer, whose Pods name what the runtime says": {owner: "TrainJob", scheduler: testbed.GangScheduler,
			spec: map[string]any{"minMember": int64(3), "queue": "research", "priorityClassName": "system-cluster-critical"}},
		"RBG": {owner: "RoleBasedGroup", scheduler: testbed.GangScheduler, spec: map[string]any{"minMember": int64(3), "queue": "research"}},
		"KubeRay, which says itself that the group is pending": {owner: "RayCluster", scheduler: ofVolcano,
			spec: map[string]any{"minMember": int64(3), "minResources": map[string]any{"cpu": "3"}}, status: map[string]any{"phase": "Pending"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newVolcanoTool(t, "job", tool.scheduler)
			if tool.spec["queue"] == nil {
				tool.spec["queue"] = "default"
			}
			j.makeGroup(tool.owner, tool.spec, tool.status)
			j.pod("job-0", "head", endsAfter(4, 0))
			j.pod("job-1", "worker", endsAfter(4, 0))
			j.waitStatus("NotEnoughTasks")
			j.nobodyIsPlaced()
			j.pod("job-2", "worker", endsAfter(4, 0))
			j.waitPlaced("job-0", "job-1", "job-2")
			j.waitPhase("Completed")
			j.check()
		})
	}
}

// TestARayClusterGrows: KubeRay replaces the whole group, and new workers are within the new minimum.
func TestARayClusterGrows(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "ray-rc-pg", ofVolcano)
	j.makeGroup("RayCluster", map[string]any{"minMember": int64(2), "queue": "default", "minResources": map[string]any{"cpu": "2"}}, map[string]any{"phase": "Pending"})
	j.pod("rc-head", "headgroup")
	j.pod("rc-worker-0", "workers")
	j.waitPlaced("rc-head", "rc-worker-0")
	j.waitPhase("Running")
	j.put(map[string]any{"minMember": int64(4), "queue": "default", "minResources": map[string]any{"cpu": "4"}})
	j.pod("rc-worker-1", "workers")
	j.waitPhase("Unknown")
	j.pod("rc-worker-2", "workers")
	j.waitPlaced("rc-head", "rc-worker-0", "rc-worker-1", "rc-worker-2")
	j.waitPhase("Running")
	j.check()
}

// TestARayJobEnds: KubeRay has its group ask for nothing then, and looks for Completed.
func TestARayJobEnds(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "ray-job-pg", ofVolcano)
	j.makeGroup("RayJob", map[string]any{"minMember": int64(2), "queue": "default", "minResources": map[string]any{"cpu": "3"}}, map[string]any{"phase": "Pending"})
	j.pod("rc-head", "headgroup")
	j.pod("rc-worker-0", "workers")
	j.waitPlaced("rc-head", "rc-worker-0")
	j.pod("job-submitter", "submittergroup", endsAfter(1, 0))
	j.waitPlaced("rc-head", "rc-worker-0", "job-submitter")
	j.deletePod("rc-head")
	j.deletePod("rc-worker-0")
	j.deletePod("job-submitter")
	j.put(map[string]any{"minMember": int64(0), "queue": "default", "minResources": map[string]any{}})
	j.waitPhase("Completed")
	j.check()
}

// TestASparkApplicationIsADriverFirst, whose executors it creates itself.
func TestASparkApplicationIsADriverFirst(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "spark-app-pg", ofVolcano)
	j.makeGroup("SparkApplication", map[string]any{"minMember": int64(1), "queue": "default", "minResources": map[string]any{"cpu": "3"}}, map[string]any{"phase": "Pending"})
	j.waitPhase("Inqueue")
	j.pod("app-driver", "", endsAfter(6, 0))
	j.waitPlaced("app-driver")
	j.pod("app-exec-1", "", endsAfter(2, 0))
	j.pod("app-exec-2", "", endsAfter(2, 0))
	j.waitPlaced("app-driver", "app-exec-1", "app-exec-2")
	j.waitPhase("Completed")
	j.check()
}

// TestALeaderComesBeforeItsGroup: LWS makes the group of a replica when it sees the leader, and the workers
// after that. While there is no group, the leader is told so, by which LWS sees it again. A leader that
// is created anew has a group of the same name.
func TestALeaderComesBeforeItsGroup(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "lws-0-abc", testbed.GangScheduler)
	for range 2 {
		j.pod("lws-0", "")
		j.waitEvent("Pod", "FailedScheduling", "there is no PodGroup lws-0-abc of scheduling.volcano.sh")
		j.nobodyIsPlaced()
		j.makeGroup("Pod", map[string]any{"minMember": int64(2), "queue": "default", "minResources": map[string]any{"cpu": "2"}}, nil)
		j.pod("lws-0-1", "")
		j.waitPlaced("lws-0", "lws-0-1")
		j.waitPhase("Running")
		j.deletePod("lws-0")
		j.deletePod("lws-0-1")
		j.deleteGroup()
	}
}

// TestALeaderFindsTheGroupOfTheOneBefore: LWS takes it for that of the new leader, as it has the name, and it is
// collected with its owner after that. The leader waits for it, is told when it is gone, by which LWS sees the leader
// again, and has a group of its own then.
func TestALeaderFindsTheGroupOfTheOneBefore(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "lws-0-abc", testbed.GangScheduler)
	spec := map[string]any{"minMember": int64(2), "queue": "default", "minResources": map[string]any{"cpu": "2"}}
	j.makeGroup("Pod", spec, nil)
	j.pod("lws-0", "")
	j.waitStatus("1 of at least 2 members exist")
	j.deleteGroup()
	j.waitEvent("Pod", "FailedScheduling", "there is no PodGroup lws-0-abc of scheduling.volcano.sh")
	j.pod("lws-0-1", "")
	j.nobodyIsPlaced()
	j.makeGroup("Pod", spec, nil)
	j.waitPlaced("lws-0", "lws-0-1")
	j.waitPhase("Running")
}

// TestALeaderIsReadyBeforeItsWorkersCome: LWS asks for one member then.
func TestALeaderIsReadyBeforeItsWorkersCome(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "lws-0-abc", testbed.GangScheduler)
	j.makeGroup("Pod", map[string]any{"minMember": int64(1), "queue": "default", "minResources": map[string]any{"cpu": "2"}}, nil)
	j.pod("lws-0", "")
	j.waitPlaced("lws-0")
	j.waitPhase("Running")
	j.pod("lws-0-1", "")
	j.waitPlaced("lws-0", "lws-0-1")
	j.check()
}

// TestAVolcanoJobLosesATask, and there is no room for another one: the phase says Unknown, for which the job
// has policies, and an event says why.
func TestAVolcanoJobLosesATask(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "vcjob-5d2f", ofVolcano)
	j.makeGroup("Job", map[string]any{"minMember": int64(3), "queue": "default", "minTaskMember": map[string]any{"ps": int64(1), "worker": int64(2)}}, nil)
	j.waitPhase("Inqueue")
	j.pod("vcjob-ps-0", "ps")
	j.pod("vcjob-worker-0", "worker")
	j.pod("vcjob-ps-1", "ps")
	j.waitStatus("1 of at least 2 in role worker")
	j.nobodyIsPlaced()
	j.deletePod("vcjob-ps-1")
	j.pod("vcjob-worker-1", "worker")
	j.waitPlaced("vcjob-ps-0", "vcjob-worker-0", "vcjob-worker-1")
	j.waitPhase("Running")
	j.deletePod("vcjob-worker-1")
	j.pod("vcjob-worker-1", "worker", fitsNowhere)
	j.waitPhase("Unknown")
	j.waitEvent("PodGroup", "Unschedulable", "tasks in gang unschedulable: ")
	j.deletePod("vcjob-worker-1")
	j.pod("vcjob-worker-1", "worker")
	j.waitPhase("Running")
	j.check()
}

// TestAStatusIsWrittenToNoOtherGroup than the one that it is about: to none that was deleted, to none that
// has its name, and to none that somebody has changed meanwhile.
func TestAStatusIsWrittenToNoOtherGroup(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "g", ofVolcano)
	spec := map[string]any{"minMember": int64(1), "queue": "default"}
	j.makeGroup("", spec, map[string]any{"phase": "Pending"})
	group := j.waitPhase("Inqueue")
	read := dialect.FromVolcano(nil)
	say := func(of *dialect.Group) error {
		write, err := of.WriteOf(&dialect.Status{Phase: "Running"}, of.ResourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cluster.volcanoGroups(j.namespace).Patch(t.Context(), j.name, write.Type, write.Body, metav1.PatchOptions{FieldManager: "lockstep-scheduler"})
		return err
	}
	if _, err := cluster.volcanoGroups(j.namespace).Patch(t.Context(), j.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{FieldManager: "tool"}); err != nil {
		t.Fatal(err)
	}
	if err := say(read(group)); !apierrors.IsConflict(err) {
		t.Errorf("a status of another version was written: %v", err)
	}
	current := j.group()
	if err := say(read(current)); err != nil {
		t.Errorf("the status of the present version is refused: %v", err)
	}
	if labels := j.group().GetLabels(); labels["a"] != "b" {
		t.Errorf("the labels are %v", labels)
	}
	j.deleteGroup()
	if err := say(read(current)); !apierrors.IsNotFound(err) {
		t.Errorf("the status of a group that was deleted was written: %v", err)
	}
	if _, err := cluster.volcanoGroups(j.namespace).Get(t.Context(), j.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the group is there again: %v", err)
	}
	j.makeGroup("", spec, nil)
	if err := say(read(current)); !apierrors.IsConflict(err) {
		t.Errorf("the status of a group was written to another one of its name: %v", err)
	}
}

// TestAGroupOfAnotherSchedulerIsLeftAlone, as soon as a Pod says so.
func TestAGroupOfAnotherSchedulerIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := newVolcanoTool(t, "theirs", "another")
	j.pod("theirs-0", "")
	later := newVolcanoTool(t, "later", ofVolcano)
	later.makeGroup("TFJob", map[string]any{"minMember": int64(1), "queue": "default"}, nil)
	later.pod("later-0", "")
	later.waitPlaced("later-0") // so the scheduler has seen the Pod that came before
	j.makeGroup("TFJob", map[string]any{"minMember": int64(1), "queue": "default"}, nil)
	ours := newVolcanoTool(t, "ours", ofVolcano)
	ours.makeGroup("TFJob", map[string]any{"minMember": int64(1), "queue": "default"}, nil)
	ours.waitPhase("Inqueue") // which came later
	if status := j.group().Object["status"]; status != nil {
		t.Errorf("the status %v was written to the group of another scheduler", status)
	}
}

// TestAnotherProgramWritesThePhase: Volcano's own scheduler, say, which would have the group wait. It is written
// twice, as once may be a mistake, and then left to who fights for it: a line of the log and a metric tell that. The
// gang is placed all the same, and its events say so; other groups have their phases.
func TestAnotherProgramWritesThePhase(t *testing.T) {
	t.Parallel()
	const program = "vc-scheduler"
	j := newVolcanoTool(t, "contended", ofVolcano)
	phases := j.watchPhases()
	j.fight(program)
	j.makeGroup("TFJob", map[string]any{"minMember": int64(2), "queue": "default"}, nil)
	told := fmt.Sprintf(`its gang is placed all the same" podGroup="%s/contended of scheduling.volcano.sh" program="%s"`, j.namespace, program)
	cluster.waitLog(t, told)
	left := testbed.Metric(t, "https://"+cluster.address, cluster.ReaderOfMetrics(t, j.namespace), `lockstep_scheduler_foreign_writers{group="scheduling.volcano.sh"}`)
	if left == 0 {
		t.Error("the metrics do not say that a group is left to another program")
	}
	j.pod("contended-0", "worker", endsAfter(1, 0))
	j.pod("contended-1", "worker", endsAfter(1, 0))
	j.waitPlaced("contended-0", "contended-1")
	j.waitEvent("PodGroup", "Scheduled", "pod group is ready")
	other := newVolcanoTool(t, "uncontended", ofVolcano)
	other.makeGroup("TFJob", map[string]any{"minMember": int64(1), "queue": "default"}, nil)
	other.waitPhase("Inqueue")
	testbed.Eventually(t, "each to have written the phase twice", func(context.Context) (bool, string, error) {
		seen := phases()
		return slices.Equal(seen, []string{"", "Inqueue", "Pending", "Inqueue", "Pending"}), fmt.Sprintf("%q", seen), nil
	})
	j.check()
	log, err := cluster.scheduler.Log()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log, told); n != 1 {
		t.Errorf("the log says %d times that the group is left to another program, want once", n)
	}
}
