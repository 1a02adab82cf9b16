// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

// readerOf reads from a server as somebody who may not do some things: "list pods" in no namespace, "list pods team" not in
// that one, and "list pods *" not in all at once.
func readerOf(t *testing.T, server *apiserver.Server, forbidden ...string) *Reader {
	t.Helper()
	config := server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return kubeflow{next} })
	reader, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		asks := string(r.Verb) + " " + r.Resource
		if slices.Contains(forbidden, asks) || slices.Contains(forbidden, asks+" "+cmp.Or(r.Namespace, "*")) {
			return apiserver.Fault{Refusal: apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, errors.New("no role allows it"))}
		}
		return apiserver.Fault{}
	})
	return reader
}

// TestAKindThatAStockServerDoesNotServeIsNotMentioned: of the group of Kubernetes' own PodGroups a server has other versions,
// so that it answers a Status as it does for an object that is not there.
func TestAKindThatAStockServerDoesNotServeIsNotMentioned(t *testing.T) {
	server := apiserver.New(t)
	config := server.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stock{next} })
	reader, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	running(server, frameworkv1.TaskAttemptPreparing, func(*frameworkv1.TaskStatus) {})
	memberOf(server, func(*corev1.Pod) {})
	answer, err := reader.Why(t.Context(), parsed(t, "team", "train"))
	if err != nil {
		t.Fatal(err)
	}
	for _, unknown := range answer.Unknown {
		if strings.Contains(unknown, "PodGroups") {
			t.Errorf("it is told %q", unknown)
		}
	}
}

// stock answers as kube-apiserver does that serves other versions of the group scheduling.k8s.io.
type stock struct{ next http.RoundTripper }

func (s stock) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/apis/scheduling.k8s.io/v1alpha") && !strings.HasPrefix(r.URL.Path, "/apis/scheduling.k8s.io/v1beta") {
		return s.next.RoundTrip(r)
	}
	body := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// kubeflow says that some of Kubeflow's jobs are served, which the server in memory does not.
type kubeflow struct{ next http.RoundTripper }

func (d kubeflow) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/apis/kubeflow.org/v1" {
		return d.next.RoundTrip(r)
	}
	body := `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"kubeflow.org/v1","resources":[{"name":"pytorchjobs"},{"name":"tfjobs"}]}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// running is a Framework of one task whose gang has a group; the task is in a state.
func running(server *apiserver.Server, state frameworkv1.TaskState, change func(*frameworkv1.TaskStatus)) {
	group := apiserver.Add(server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: frameworkv1.PodGroupName("train")},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}})
	task := &frameworkv1.TaskStatus{State: state, TransitionTime: metav1.Now()}
	task.AttemptStatus.PodName = "train-worker-0"
	change(task)
	fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "of-train"}}
	fw.Spec.Gang, fw.Spec.TaskRoles = &frameworkv1.GangSpec{}, []frameworkv1.TaskRoleSpec{{Name: "worker", TaskNumber: 1}}
	fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning, Tasks: &frameworkv1.TaskCounts{Total: 1}}
	fw.Status.AttemptStatus.PodGroup = &frameworkv1.AttemptPodGroupStatus{Name: group.Name, UID: group.UID, MinMember: 1}
	fw.Status.AttemptStatus.TaskRoleStatuses = []*frameworkv1.TaskRoleStatus{{Name: "worker", TaskStatuses: []*frameworkv1.TaskStatus{task}}}
	apiserver.Add(server, fw)
}

// memberOf is a Pod of that Framework's gang.
func memberOf(server *apiserver.Server, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-worker-0", Labels: map[string]string{
		schedulingv1alpha1.LabelPodGroup: frameworkv1.PodGroupName("train"), frameworkv1.KeyFrameworkName: "train"},
		Annotations: map[string]string{frameworkv1.KeyFrameworkUID: "of-train"}}}
	change(pod)
	return apiserver.Add(server, pod)
}

// TestWhyAFrameworkHasTooFewPodsIsSaidByItsTasks, and never that somebody is to create Pods.
func TestWhyAFrameworkHasTooFewPodsIsSaidByItsTasks(t *testing.T) {
	ends := metav1.Now()
	for name, tc := range map[string]struct {
		state  frameworkv1.TaskState
		change func(*frameworkv1.TaskStatus)
		pod    func(*corev1.Pod)
		want   answers.Reason
		says   string
	}{
		"waits for its retry": {state: frameworkv1.TaskAttemptCompleted, want: "Retrying", says: "wait for their retry, the first until ",
			change: func(task *frameworkv1.TaskStatus) { task.RetryPolicyStatus.RetryDelaySec = ptr.To[int64](600) }},
		"has an old Pod that is ending": {state: frameworkv1.TaskAttemptDeleting, want: "Ending", says: "such as train-worker-0 on node node-7",
			change: func(task *frameworkv1.TaskStatus) { task.AttemptStatus.PodNodeName = ptr.To("node-7") },
			pod: func(pod *corev1.Pod) {
				pod.Spec.NodeName, pod.DeletionTimestamp, pod.Finalizers = "node-7", &ends, []string{"example.com/kept"}
			}},
		"has an old Pod that has failed": {state: frameworkv1.TaskAttemptDeleting, want: "Ending", says: "can be run again when the old Pods have ended",
			change: func(*frameworkv1.TaskStatus) {}, pod: func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }},
		"is about to have its Pod": {state: frameworkv1.TaskAttemptCreationRequested, want: "Creating", says: "about to get their Pods", change: func(*frameworkv1.TaskStatus) {}},
	} {
		t.Run(name, func(t *testing.T) {
			server := apiserver.New(t)
			running(server, tc.state, tc.change)
			if tc.pod != nil {
				memberOf(server, tc.pod)
			}
			answer, err := readerOf(t, server).Why(t.Context(), parsed(t, "team", "train"))
			if err != nil || answer.Reason != tc.want || !strings.Contains(answer.Message, tc.says) || strings.Contains(answer.Next, "create more Pods") {
				t.Errorf("%v, %s: %s\nnext: %s", err, answer.Reason, answer.Message, answer.Next)
			}
		})
	}
}

// TestWhyIsAnsweredToWhoMayReadLittle: what may not be read is said, and what the Framework says of its gang is the answer.
func TestWhyIsAnsweredToWhoMayReadLittle(t *testing.T) {
	for name, forbidden := range map[string][]string{
		"Pods":      {"list pods", "list nodes"},
		"PodGroups": {"list pods *", "list podgroups", "get podgroups"},
		"both":      {"list pods", "list podgroups", "get podgroups", "list nodes", "list priorityclasses"},
	} {
		t.Run(name, func(t *testing.T) {
			server := apiserver.New(t)
			running(server, frameworkv1.TaskAttemptPreparing, func(*frameworkv1.TaskStatus) {})
			apiserver.Change(server, "team", frameworkv1.PodGroupName("train"), func(group *schedulingv1alpha1.PodGroup) {
				group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: "NotEnoughResources", Message: "short of 1 cpu"}}
			})
			apiserver.Change(server, "team", "train", func(fw *frameworkv1.Framework) {
				fw.Status.AttemptStatus.PodGroup.Unschedulable = &frameworkv1.AttemptUnschedulable{Reason: "NotEnoughResources", Message: "short of 1 cpu"}
			})
			answer, err := readerOf(t, server, forbidden...).Why(t.Context(), parsed(t, "team", "train"))
			lacks := strings.Join(answer.Unknown, "\n")
			if err != nil || answer.Reason != answers.ReasonNotEnoughResources || !strings.Contains(answer.Message, "short of 1 cpu") || !strings.Contains(lacks, "of namespace team") {
				t.Errorf("%v, %s: %s\nnot known: %s", err, answer.Reason, answer.Message, lacks)
			}
		})
	}
}

// TestWhyOfAPodGroupWhosePodsMayNotBeListedIsWhatItsConditionSays, and not that it has none.
func TestWhyOfAPodGroupWhosePodsMayNotBeListedIsWhatItsConditionSays(t *testing.T) {
	server := apiserver.New(t)
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bare"}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}}
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Message: "short of 1 cpu"}}
	apiserver.Add(server, group)
	answer, err := readerOf(t, server, "list pods").Why(t.Context(), parsed(t, "team", "bare"))
	if err != nil || answer.Reason != answers.ReasonNotEnoughResources || answer.Message != "the scheduler has said: short of 1 cpu" {
		t.Errorf("%v, %s: %s", err, answer.Reason, answer.Message)
	}
}

// TestARunningGangIsNotSaidToWaitToWhoMayNotListItsPods.
func TestARunningGangIsNotSaidToWaitToWhoMayNotListItsPods(t *testing.T) {
	server := apiserver.New(t)
	group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bare"}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}}
	group.Status.Phase = schedulingv1alpha1.PodGroupRunning
	apiserver.Add(server, group)
	answer, err := readerOf(t, server, "list pods").Why(t.Context(), parsed(t, "team", "bare"))
	if err != nil || answer.Reason != answers.ReasonUnknown || !strings.Contains(answer.Message, "whether it waits is not known") {
		t.Errorf("%v, %s: %s", err, answer.Reason, answer.Message)
	}
	// Nor that there is none to who may not list PodGroups.
	if _, err := readerOf(t, server, "list podgroups").Why(t.Context(), parsed(t, "team", "podgroup/bare")); err == nil || !strings.Contains(err.Error(), "podgroups.scheduling.lockstep.dev") || !strings.Contains(err.Error(), "may not") {
		t.Errorf("who may not list PodGroups: %v", err)
	}
}

// TestWhatMayNotBeReadIsNamedWhereNothingIsFound: it may be what was asked for.
func TestWhatMayNotBeReadIsNamedWhereNothingIsFound(t *testing.T) {
	server := apiserver.New(t)
	reader := readerOf(t, server, "get pytorchjobs")
	_, err := reader.Why(t.Context(), parsed(t, "team", "train"))
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "pytorchjobs.kubeflow.org") || strings.Contains(err.Error(), "tfjobs") {
		t.Errorf("why: %v", err)
	}
	if err := reader.AddNamed(t.Context(), parsed(t, "team", "train"), &Jobs{}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "pytorchjobs.kubeflow.org") {
		t.Errorf("get: %v", err)
	}
	if _, err := readerOf(t, server).Why(t.Context(), parsed(t, "team", "train")); strings.Contains(err.Error(), "may not read") {
		t.Errorf("who may read all: %v", err)
	}
}

// TestWhyNamesFieldsOfAJobThatTheAPIServerDrops, also when the event about them is gone. A reader that is not to ask, as the web page's, does not.
func TestWhyNamesFieldsOfAJobThatTheAPIServerDrops(t *testing.T) {
	template := runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"tensorflow","image":"i","resurces":{}}]}}`)}
	for kind, want := range map[string]string{
		"vcjob": "spec.tasks[0].template.spec.containers[0].resurces: unknown field",
		"tfjob": "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resurces: unknown field",
	} {
		t.Run(kind, func(t *testing.T) {
			server := apiserver.New(t)
			meta := metav1.ObjectMeta{Namespace: "team", Name: "j"}
			if kind == "vcjob" {
				apiserver.Add(server, &batchv1alpha1.Job{ObjectMeta: meta, Spec: batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{{Name: "a", Replicas: 1, Template: template}}}})
			} else {
				apiserver.Add(server, &kubeflowv1.TFJob{ObjectMeta: meta, Spec: kubeflowv1.TFJobSpec{TFReplicaSpecs: map[string]kubeflowv1.ReplicaSpec{"Worker": {Template: template}}}})
			}
			for _, asks := range []bool{true, false} {
				reader := readerOf(t, server)
				reader.AsksAboutFields = asks
				answer, err := reader.Why(t.Context(), parsed(t, "team", kind+"/j"))
				if evidence := strings.Join(answer.Evidence, "\n"); err != nil || strings.Contains(evidence, want) != asks {
					t.Errorf("asking %t: %v, %s: %s, want %q", asks, err, answer.Message, evidence, want)
				}
			}
		})
	}
}
