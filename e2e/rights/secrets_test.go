//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// sentinel is the value of variables that nobody else is to read.
const sentinel = "s3nt1nel-of-a-test"

// hostile is what a container says that is about to forge a line of the log, and to take hold of
// the terminal of whoever reads it.
const hostile = "bye\nI1123 00:00:00.000000       1 forged.go:1] \"All is well\"\n\x1b[2J\x1b]0;mine\a"

// TestNothingTellsWhatIsSecret: the value of a variable that looks like a password is in no event,
// no status and no line of a log, whether or not its template is one of which Pods can be made. And
// what a container says is no line of the log, and no command to a terminal.
func TestNothingTellsWhatIsSecret(t *testing.T) {
	namespace := cluster.Namespace(t)
	statuses := statusesOfFrameworks(t, namespace, "spoken")
	const container = "{name: CONTAINER, image: i, env: ENV}"
	for name, env := range map[string]string{
		"fine":    "[{name: DB_PASSWORD, value: " + sentinel + "}]",
		"broken":  "{DB_PASSWORD: " + sentinel + "}",
		"invalid": "[{name: 'DB=PASSWORD', value: " + sentinel + "}]",
		"strings": "[DB_PASSWORD=" + sentinel + "]",
	} {
		of := func(c string) string { return strings.NewReplacer("CONTAINER", c, "ENV", env).Replace(container) }
		fw := &frameworkv1.Framework{}
		if err := yaml.UnmarshalStrict([]byte("{spec: {executionType: Start, retryPolicy: {maxRetryCount: 1}, taskRoles: [{name: a, taskNumber: 1, frameworkAttemptCompletionPolicy: "+
			"{minFailedTaskCount: 1, minSucceededTaskCount: -1}, task: {pod: {metadata: {annotations: {"+jobs.AnnotationRunSeconds+": '1', "+jobs.AnnotationExitCode+": '1'}}, "+
			"spec: {restartPolicy: Never, containers: ["+of("c")+"]}}}}]}}"), fw); err != nil {
			t.Fatal(err)
		}
		fw.Name = name
		cluster.CreateFramework(t, namespace, fw)
		// One that is refused is told so to its user alone.
		for kind, job := range map[string]string{
			"batch.volcano.sh/v1alpha1, kind: Job": "{tasks: [{name: b, replicas: 1, template: {spec: {restartPolicy: Never, containers: [" + of("c") + "]}}}]}",
			"kubeflow.org/v1, kind: TFJob":         "{tfReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [" + of("tensorflow") + "]}}}}}",
		} {
			out, err := cluster.KubectlApply(t.Context(), namespace, "{apiVersion: "+kind+", metadata: {name: "+name+"}, spec: "+job+"}")
			if err != nil && name == "fine" {
				t.Fatal(err, out)
			}
		}
	}
	for _, name := range []string{"fine", "broken", "invalid", "strings"} {
		waitGone(t, namespace, name) // It is tried, fails, and is deleted, with a history.
	}

	j := cluster.CreateTrainingJob(t, namespace, testbed.TFJob, "hostile", "{tfReplicaSpecs: {Worker: {replicas: 1, restartPolicy: Never, @?}}}", nil)
	j.HasPods("hostile-worker-0")
	said(t, namespace, "hostile-worker-0")
	j.InPhase(kubeflowv1.JobFailed)
	spoken := jobs.MakeFramework("spoken").Role("a", 1, jobs.RunForever().Scheduler(testbed.ByHand)).Obj()
	cluster.CreateFramework(t, namespace, spoken)
	testbed.EventuallyWithin(t, soon, "the Pod of the Framework", podExists(namespace, "spoken-a-0"))
	said(t, namespace, "spoken-a-0")
	waitGone(t, namespace, "spoken")

	told := map[string]string{"statuses of Frameworks": <-statuses}
	var err error
	if told["events"], err = cluster.Kubectl(t.Context(), "get", "events", "-n", namespace, "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	if told["statuses"], err = cluster.Kubectl(t.Context(), "get", "jobs.batch.volcano.sh,tfjobs.kubeflow.org,podgroups.scheduling.lockstep.dev", "-n", namespace, "-o", "jsonpath={.items[*].status}"); err != nil {
		t.Fatal(err)
	}
	if told["log of the controller"], err = controller.Log(); err != nil {
		t.Fatal(err)
	}
	if told["log of the scheduler"], err = scheduler.Log(); err != nil {
		t.Fatal(err)
	}
	for what, text := range told {
		if at := strings.Index(text, sentinel); at >= 0 {
			t.Errorf("%s: …%s…", what, text[max(0, at-300):at+len(sentinel)])
		}
		if strings.HasPrefix(what, "log ") && strings.ContainsAny(text, "\x1b\a") {
			at := strings.IndexAny(text, "\x1b\a")
			t.Errorf("%s has a command to the terminal: …%q", what, text[max(0, at-300):at+1])
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "I1123 00:00:00.000000       1 forged.go:1]") {
				t.Errorf("%s has a line that was forged: %s", what, line)
			}
		}
	}
	if !strings.Contains(told["log of the controller"], "ObjectSnapshot") || !strings.Contains(told["events"], "fine") ||
		!strings.Contains(told["statuses of Frameworks"], "fine") {
		t.Error("nothing was told at all")
	}
}

// statusesOfFrameworks gives all that is stored of Frameworks in a namespace but their specs, once one of them is gone.
func statusesOfFrameworks(t *testing.T, namespace, last string) <-chan string {
	t.Helper()
	client := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := testbed.Watch(t, list, client.Watch).ResultChan()
	all := make(chan string, 1)
	go func() {
		var statuses strings.Builder
		for event := range stored {
			if fw, is := event.Object.(*frameworkv1.Framework); is {
				text, err := json.Marshal(fw.Status)
				fmt.Fprintln(&statuses, fw.Name, string(text), err)
				if event.Type == watch.Deleted && fw.Name == last {
					break
				}
			}
		}
		all <- statuses.String()
	}()
	return all
}

// waitGone waits until a Framework is gone.
func waitGone(t *testing.T, namespace, name string) {
	t.Helper()
	testbed.EventuallyWithin(t, soon, "Framework "+name+" to be gone", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "frameworks", name, "-n", namespace, "--ignore-not-found", "-o", "jsonpath={.metadata.name}{.status.state}")
		return err == nil && out == "", out, nil
	})
}

// said has the container of a Pod fail and say what is hostile.
func said(t *testing.T, namespace, name string) {
	t.Helper()
	pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.Message, pod.Status.Reason = corev1.PodFailed, hostile, hostile
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: hostile, Message: hostile}}}}
	if _, err := cluster.Kube.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
