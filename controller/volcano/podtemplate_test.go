// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// builderOf is the builder of the valid Job j in the namespace ns with the UID u. In the
// spec, @t stands for a good template.
func builderOf(t *testing.T, spec string) *builder {
	t.Helper()
	return builderFor(t, jobOf(t, objectOf(t, "", spec)))
}

func builderFor(t *testing.T, job *batchv1alpha1.Job) *builder {
	t.Helper()
	job.Namespace, job.UID = "ns", "u"
	if problems := Validate(job); len(problems) > 0 {
		t.Fatalf("the Job is not valid: %v", problems)
	}
	b, err := newBuilder(job, effective(&job.Spec), "lockstep-scheduler", []string{"lockstep-scheduler", "volcano", ""})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAPodHasItsNameOwnerLabelsAndAnnotations(t *testing.T) {
	job := jobOf(t, objectOf(t, "", `{queue: q, tasks: [{name: other, replicas: 1, @t},
  {name: w, replicas: 4, topologyPolicy: restricted, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, template: {
    metadata: {name: mine, generateName: g-, namespace: elsewhere, labels: {app: train, volcano.sh/task-index: "99"}, annotations: {note: kept}},
    spec: {containers: [{name: c}]}}}]}`))
	job.Labels = map[string]string{"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "1h", "team": "x"}
	job.Annotations = map[string]string{
		"volcano.sh/preemptable": "false", "volcano.sh/revocable-zone": "*", "volcano.sh/jdb-max-unavailable": "1", "note": "of the Job",
	}
	pod := builderFor(t, job).pod(1, 3, podMoment{Version: 5, RetryCount: 2, Group: "j-job-5"})

	want := metav1.ObjectMeta{
		Name: "j-w-3", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "j", UID: "u", Controller: new(true), BlockOwnerDeletion: new(true),
		}},
		Labels: map[string]string{
			"app": "train", "volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns", "volcano.sh/task-spec": "w", "volcano.sh/task-index": "3",
			"volcano.sh/queue-name": "q", "volcano.sh/partition-id": "1", "volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "1h",
			"scheduling.lockstep.dev/pod-group": "j-job-5", "scheduling.lockstep.dev/role": "w",
		},
		Annotations: map[string]string{
			"note": "kept", "volcano.sh/job-name": "j", "volcano.sh/task-spec": "w", "volcano.sh/task-index": "3", "volcano.sh/queue-name": "q",
			"volcano.sh/job-version": "5", "volcano.sh/job-retry-count": "2", "volcano.sh/template-uid": "j-w",
			"volcano.sh/numa-topology-policy": "restricted", "volcano.sh/preemptable": "false", "volcano.sh/revocable-zone": "*",
			"volcano.sh/jdb-max-unavailable": "1", "scheduling.k8s.io/group-name": "j-u",
		},
	}
	if diff := cmp.Diff(want, pod.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want,+got):\n%s", diff)
	}
}

func TestAMinimumOfADisruptionBudgetIsTakenBeforeAMaximum(t *testing.T) {
	job := jobOf(t, objectOf(t, "", "{tasks: [{name: a, replicas: 1, @t}]}"))
	job.Annotations = map[string]string{"volcano.sh/jdb-max-unavailable": "1", "volcano.sh/jdb-min-available": "2"}
	got := builderFor(t, job).pod(0, 0, podMoment{}).Annotations
	if _, there := got["volcano.sh/jdb-max-unavailable"]; there || got["volcano.sh/jdb-min-available"] != "2" {
		t.Errorf("annotations: got %v", got)
	}
}

func TestALongQueueIsNoLabel(t *testing.T) {
	queue := strings.Repeat("q", 64)
	pod := builderOf(t, "{queue: "+queue+", tasks: [{name: a, replicas: 1, @t}]}").pod(0, 0, podMoment{})
	if _, there := pod.Labels["volcano.sh/queue-name"]; there || pod.Annotations["volcano.sh/queue-name"] != queue {
		t.Errorf("got the labels %v and the annotations %v", pod.Labels, pod.Annotations)
	}
}

func TestSchedulerClassAndDNSOfAPod(t *testing.T) {
	tests := map[string]struct {
		job, template string
		want          corev1.PodSpec
	}{
		"nobody names a scheduler":                 {want: corev1.PodSpec{SchedulerName: "lockstep-scheduler"}},
		"the Job names Volcano's":                  {job: "schedulerName: volcano,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler"}},
		"the template names Volcano's":             {template: "schedulerName: volcano,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler"}},
		"the template names another scheduler":     {job: "schedulerName: volcano,", template: "schedulerName: default-scheduler,", want: corev1.PodSpec{SchedulerName: "default-scheduler"}},
		"the Job names a class":                    {job: "priorityClassName: x,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler", PriorityClassName: "x"}},
		"the template names another class":         {job: "priorityClassName: x,", template: "priorityClassName: z,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler", PriorityClassName: "z"}},
		"the template has a priority":              {job: "priorityClassName: x,", template: "priority: 7,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler", Priority: new(int32(7))}},
		"the network of the host":                  {template: "hostNetwork: true,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler", HostNetwork: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet}},
		"the network of the host, and its own DNS": {template: "hostNetwork: true, dnsPolicy: Default,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler", HostNetwork: true, DNSPolicy: corev1.DNSDefault}},
		"a policy of restarts":                     {template: "restartPolicy: OnFailure,", want: corev1.PodSpec{SchedulerName: "lockstep-scheduler", RestartPolicy: corev1.RestartPolicyOnFailure}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, "{"+tc.job+" tasks: [{name: a, replicas: 1, template: {spec: {"+tc.template+" containers: [{name: c, image: i}]}}}]}")
			tc.want.Containers = []corev1.Container{{Name: "c", Image: "i"}}
			if diff := cmp.Diff(tc.want, b.pod(0, 0, podMoment{}).Spec); diff != "" {
				t.Errorf("spec (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestAPodOfAnotherSchedulerHasNoGroupOfOurs: Volcano's scheduler would wait for one.
func TestAPodOfAnotherSchedulerHasNoGroupOfOurs(t *testing.T) {
	job := jobOf(t, objectOf(t, "", `{schedulerName: lockstep-scheduler, tasks: [{replicas: 1, @t},
  {replicas: 1, template: {spec: {schedulerName: volcano, containers: [{name: c, image: i}]}}}]}`))
	b, err := newBuilder(job, effective(&job.Spec), "lockstep-scheduler", []string{"lockstep-scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range []bool{true, false} {
		pod := b.pod(place, 0, podMoment{})
		if _, got := pod.Annotations[batchv1alpha1.KeyGroupName]; got != want {
			t.Errorf("a Pod of scheduler %s has a group: %v, want %v", pod.Spec.SchedulerName, got, want)
		}
	}
}

func TestPodsOfTasksWithoutNames(t *testing.T) {
	b := builderOf(t, "{tasks: [{replicas: 1, @t}, {replicas: 1, dependsOn: {name: [default0]}, @t}]}")
	for place, want := range []string{"j-default0-0", "j-default1-0"} {
		if got := b.pod(place, 0, podMoment{}).Name; got != want {
			t.Errorf("Pod of task %d: got %s, want %s", place, got, want)
		}
	}
}

func TestPodsShareNothing(t *testing.T) {
	b := builderOf(t, "{plugins: {svc: [], ssh: [], mpi: [--master=a]}, volumes: [{mountPath: /v, volumeClaimName: v}], tasks: [{name: a, replicas: 2, @t}]}")
	want := textOf(t, b.pod(0, 1, podMoment{}))
	first := b.pod(0, 0, podMoment{})
	first.Labels["x"] = "y"
	for i := range first.Spec.Containers[0].Env {
		if from := first.Spec.Containers[0].Env[i].ValueFrom; from != nil {
			from.ConfigMapKeyRef.Name = "changed"
		}
	}
	*first.Spec.Volumes[len(first.Spec.Volumes)-1].Secret.DefaultMode = 1
	if got := textOf(t, b.pod(0, 1, podMoment{})); got != want {
		t.Errorf("changing one Pod changed another (-want,+got):\n%s", cmp.Diff(want, got))
	}
}

// textOf is an object as it is on the wire.
func textOf(t *testing.T, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheSchedulerOfATemplate(t *testing.T) {
	for template, want := range map[string]string{
		"":                                  "",
		`{"spec":{"schedulerName":"s"}}`:    "s",
		`{"spec":{}}`:                       "",
		`{"spec":{"schedulerName":1}}`:      "",
		`{"spec":{"schedulerName":"s"},"`:   "",
		`{"metadata":{"schedulerName":""}}`: "",
	} {
		task := &batchv1alpha1.TaskSpec{}
		task.Template.Raw = []byte(template)
		if got := jobpods.TemplateScheduler(task.Template.Raw); got != want {
			t.Errorf("of %q: got %q, want %q", template, got, want)
		}
	}
}
