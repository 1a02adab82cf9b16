// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

// hasGang adds a PodGroup called gang, one Pod of which waits, and of which the scheduler has said something.
func (u *user) hasGang(said string) {
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "gang"}}
	group.Spec.MinMember = 1
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Message: said}}
	apiserver.Add(u.api, group)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "member", Labels: map[string]string{schedulingv1alpha1.LabelPodGroup: "gang"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	apiserver.Add(u.api, pod)
}

// TestTheLineSaysWhyEachWaits, as far as that is known, and what is not known.
func TestTheLineSaysWhyEachWaits(t *testing.T) {
	u := someone(t)
	u.hasGang("short of 8 nvidia.com/gpu")
	u.sees(u.types("queue"), 0, "RANK", "AGE   REASON", "short of 8 nvidia.com/gpu", "not known: the scheduler was not asked: its back-offs")
	u.sees(u.types("queue", "-o", "json"), 0, `"reason": "short of 8 nvidia.com/gpu"`)
}

// TestTheSchedulerIsAskedForWhatItAloneKnows, with the token of the user.
func TestTheSchedulerIsAskedForWhatItAloneKnows(t *testing.T) {
	until := time.Now().Add(5 * time.Minute)
	var asked string
	scheduler := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		if r.Header.Get("Authorization") != "Bearer mine" {
			http.Error(w, "the user is not known", http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/lockstep/v1/line":
			_ = json.NewEncoder(w).Encode(answers.Line{Gangs: []answers.Waiting{
				{Rank: 1, Namespace: "a", Name: "gang", Reason: "no room", BackOffUntil: &until, Reserved: true}, {Rank: 2, Namespace: "a", Name: "second"}}})
		case "/lockstep/v1/why/a/gang":
			_ = json.NewEncoder(w).Encode(answers.Why{Reason: answers.ReasonBackOff, Message: "it is tried again soon"})
		}
	}))
	defer scheduler.Close()
	u := someone(t)
	u.hasGang("")
	u.sees(u.types("queue", "--scheduler", scheduler.URL), 0, "BACK-OFF   RESERVED   REASON", "4m59s      yes        no room", "none       no         -")
	if asked != "/lockstep/v1/line?namespace=a" {
		t.Errorf("it was asked %s", asked)
	}
	u.sees(u.types("queue", "-A", "--scheduler", scheduler.URL), 0, "gang")
	if asked != "/lockstep/v1/line" {
		t.Errorf("it was asked %s", asked)
	}
	u.sees(u.types("why", "podgroup/gang", "--scheduler", scheduler.URL), 0, "BackOff: it is tried again soon")
	u.sees(u.types("queue", "--scheduler", scheduler.URL, "--token=another"), 4, "the scheduler answers 401 Unauthorized: the user is not known")
	u.sees(u.types("queue", "--scheduler", "http://127.0.0.1:1"), 2, "is not the URL of a scheduler")
	u.sees(u.types("queue", "--scheduler", scheduler.URL, "--as=somebody"), 2, "--as and --scheduler don't go together")
}

// TestWhyNamesDroppedFieldsAlsoWhereTheSchedulerIsAsked, which does not know of them.
func TestWhyNamesDroppedFieldsAlsoWhereTheSchedulerIsAsked(t *testing.T) {
	scheduler := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(answers.Why{Reason: answers.ReasonBackOff, Message: "it is tried again soon"})
	}))
	defer scheduler.Close()
	u := someone(t)
	job := &kubeflowv1.TFJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mistyped", UID: "of-mistyped"}}
	template := runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"tensorflow","image":"i","resurces":{}}]}}`)}
	job.Spec.TFReplicaSpecs = map[string]kubeflowv1.ReplicaSpec{kubeflowv1.ReplicaWorker: {Replicas: ptr.To[int32](2), Template: template}}
	apiserver.Add(u.api, job)
	u.hasGroup("mistyped", schedulingv1alpha1.ReasonNotEnoughResources,
		metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "mistyped", UID: "of-mistyped", Controller: ptr.To(true)})
	for _, pod := range []string{"mistyped-worker-0", "mistyped-worker-1"} {
		u.hasPodOf(pod, "of-mistyped", map[string]string{schedulingv1alpha1.LabelPodGroup: "mistyped"}, corev1.PodPending)
	}
	u.sees(u.types("why", "tfjob/mistyped", "--scheduler", scheduler.URL), 0, "BackOff: it is tried again soon",
		"spec.tfReplicaSpecs.Worker.template.spec.containers[0].resurces: unknown field")
}
