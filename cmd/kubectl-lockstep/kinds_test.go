// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// hasJobs adds three jobs: the TFJob tf, whose gang waits for room; the Volcano Job vc, of which a Pod runs; and the PodGroup bare.
func (u *user) hasJobs() {
	tf := &kubeflowv1.TFJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "tf", UID: "of-tf"}}
	tf.Spec.TFReplicaSpecs = map[string]kubeflowv1.ReplicaSpec{"Worker": {Replicas: ptr.To(int32(2))}}
	tf.Status.Conditions = []kubeflowv1.JobCondition{{Type: "Created", Status: corev1.ConditionTrue, Reason: "TFJobCreated", Message: "TFJob a/tf is created."}}
	apiserver.Add(u.api, tf)
	u.hasGroup("tf", schedulingv1alpha1.ReasonNotEnoughResources, metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "tf", UID: "of-tf", Controller: ptr.To(true)})
	u.hasPodOf("tf-worker-0", "of-tf", map[string]string{kubeflowv1.KeyJobName: "tf", kubeflowv1.KeyReplicaType: "worker", kubeflowv1.KeyReplicaIndex: "0",
		schedulingv1alpha1.LabelPodGroup: "tf"}, corev1.PodPending)

	vc := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "vc", UID: "of-vc"}}
	vc.Spec.Tasks = []batchv1alpha1.TaskSpec{{Name: "launcher", Replicas: 1}, {Name: "worker", Replicas: 2}}
	vc.Status.State.Phase = "Running"
	apiserver.Add(u.api, vc)
	u.hasPodOf("vc-worker-1", "of-vc", map[string]string{batchv1alpha1.KeyJobName: "vc", batchv1alpha1.KeyTaskName: "worker", batchv1alpha1.KeyTaskIndex: "1"}, corev1.PodRunning)

	u.hasGroup("bare", schedulingv1alpha1.ReasonNotEnoughTasks)
	u.hasPodOf("loner", "", map[string]string{schedulingv1alpha1.LabelPodGroup: "bare"}, corev1.PodRunning)
}

func (u *user) hasGroup(name, waitsFor string, owners ...metav1.OwnerReference) {
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, OwnerReferences: owners}}
	group.Spec.MinMember, group.Status.Phase = 2, schedulingv1alpha1.PodGroupPending
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: waitsFor, Message: "it waits"}}
	apiserver.Add(u.api, group)
}

func (u *user) hasPodOf(name string, owner types.UID, labels map[string]string, phase corev1.PodPhase) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: labels}}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "any/v1", Kind: "Job", Name: "any", UID: owner, Controller: ptr.To(true)}}
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	if pod.Status.Phase = phase; phase == corev1.PodRunning {
		pod.Spec.NodeName = "node-1"
	}
	apiserver.Add(u.api, pod)
}

// TestEachVerbTakesEachKindThatGetLists, by its bare name, or says what to do in its place.
func TestEachVerbTakesEachKindThatGetLists(t *testing.T) {
	u := someone(t)
	u.hasJobs()
	u.answers = func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/log") {
			return answered(http.StatusOK, "text/plain", "a line\n")
		}
		return nil
	}
	for _, says := range []struct {
		command string
		code    int
		texts   []string
	}{
		{"get", 0, []string{"TFJob", "0/2 running   NotEnoughResources"}},
		{"get tf", 0, []string{"TFJob", "NotEnoughResources"}},
		{"get podgroup/bare", 0, []string{"PodGroup", "Pending", "NotEnoughTasks"}},
		{"describe tf", 0, []string{"gang tf: Pending", "it waits", "worker  0/1 running", "Created     True     TFJobCreated"}},
		{"describe vc", 0, []string{"vc  Running", "worker  1/1 running", "1   Running   node-1"}},
		{"describe bare", 0, []string{"bare  Pending", "loner   Running   node-1"}},
		{"logs tf", 1, []string{"1 of 1 Pod has no node yet, and so no log", "hint: `why tf`"}},
		{"logs vc", 0, []string{"[worker/1] a line"}},
		{"logs vc worker/1", 0, []string{"[worker/1] a line"}},
		{"logs vc worker/7", 3, []string{"has no Pod of worker/7 now"}},
		{"logs podgroup/bare", 0, []string{"[loner] a line"}},
		{"logs vc --attempt=1", 2, []string{"has no logs of single attempts"}},
		{"history tf", 2, []string{"tfjob/tf is not a Framework", "keeps no history", "`describe tf`"}},
		{"wait tf --for=pending", 0, []string{"tfjob/tf Pending"}},
		{"wait tf --for=Running --timeout=0s", 5, []string{"timed out", "tfjob/tf to be Running: it is Pending"}},
		{"wait vc --for=Running", 0, []string{"job.batch.volcano.sh/vc Running"}},
		{"wait bare --for=Pending", 0, []string{"podgroup/bare Pending"}},
		{"wait none --for=Deleted", 0, []string{"deleted"}},
		{"top vc", 0, []string{"worker   1"}},
		{"top tf", 0, []string{"worker   1"}},
		{"scale tf worker=3", 0, []string{"tfjob/tf scaled"}},
		{"scale vc worker=4", 0, []string{"job.batch.volcano.sh/vc scaled"}},
		{"scale vc ps=4", 3, []string{"has no role ps", "its roles are launcher, worker"}},
		{"scale bare worker=3", 2, []string{"podgroup/bare is not a Framework", "scale the job"}},
		{"stop tf", 0, []string{"tfjob/tf suspended"}},
		{"stop vc", 0, []string{"aborted by a Command AbortJob"}},
		{"stop bare", 2, []string{"stop the job that the PodGroup is for"}},
		{"retry tf", 2, []string{"tfjob/tf is not a Framework", "get tfjob/tf -o yaml"}},
		{"retry vc", 0, []string{"restarted by a Command RestartJob"}},
		{"retry bare", 2, []string{"retry the job"}},
		{"start vc", 1, []string{"only a Job that is Aborted"}},
		{"describe none", 3, []string{`"none" not found in namespace a: no Framework, job or PodGroup`}},
	} {
		u.sees(u.types(strings.Fields(says.command)...), says.code, says.texts...)
	}
	if tf := apiserver.Find[kubeflowv1.TFJob](u.api, "a", "tf"); *tf.Spec.TFReplicaSpecs["Worker"].Replicas != 3 || !*tf.Spec.RunPolicy.Suspend {
		t.Errorf("the TFJob is %+v", tf.Spec)
	}
	if vc := apiserver.Find[batchv1alpha1.Job](u.api, "a", "vc"); vc.Spec.Tasks[0].Replicas != 1 || vc.Spec.Tasks[1].Replicas != 4 {
		t.Errorf("the Job has %+v", vc.Spec.Tasks)
	}
	u.sees(u.types("start", "tf"), 0, "tfjob/tf resumed")
	u.api.StartGarbageCollector(time.Millisecond)
	for _, name := range []string{"tf", "vc", "podgroup/bare"} {
		u.sees(u.types("delete", name), 0, "deleted")
		u.sees(u.types("get", name), 3, "not found")
	}
}

// TestStopCommandsAJobOfVolcano, that very Job, and no other of its name.
func TestStopCommandsAJobOfVolcano(t *testing.T) {
	u := someone(t)
	u.hasJobs()
	u.sees(u.types("stop", "vc", "--dry-run=client"), 0, "aborted by a Command AbortJob (dry run)")
	u.sees(u.types("stop", "vc"), 0, "aborted")
	commands := apiserver.All[busv1alpha1.Command](u.api, "a")
	if len(commands) != 1 || commands[0].Action != busv1alpha1.ActionAbortJob || commands[0].Target.UID != "of-vc" || commands[0].Target.Name != "vc" {
		t.Errorf("the Commands are %+v", commands)
	}
}
