//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

const (
	// left is the folder of what FrameworkController leaves behind.
	left = "testdata/frameworkcontroller"
	// its is the field manager of FrameworkController, by its program's name.
	its = "frameworkcontroller"
)

// TestFrameworksOfFrameworkControllerGoOn stops FrameworkController in the midst of jobs, and starts
// Lockstep in its place as docs/from-frameworkcontroller.md says. FrameworkController is what it
// leaves behind: its CRD, and Frameworks, ConfigMaps and Pods as it writes them.
func TestFrameworksOfFrameworkControllerGoOn(t *testing.T) {
	if out, err := cluster.Kubectl(t.Context(), "delete", "crd", "--timeout=2m", crds[0]); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Whatever happens, the tests that follow find Lockstep's CRDs.
	t.Cleanup(func() { installCRDs(context.WithoutCancel(t.Context()), t) })
	if out, err := cluster.Kubectl(t.Context(), "create", "--field-manager="+its, "-f", filepath.Join(left, "crd.yaml")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := cluster.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd/"+crds[0]); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	namespace := cluster.Namespace(t)
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	of := &frameworkController{
		pods:       map[string]types.UID{},
		namespace:  namespace,
		frameworks: client.Resource(frameworkv1.SchemeGroupVersion.WithResource("frameworks")).Namespace(namespace),
	}
	for _, name := range []string{"running", "negative", "unrecorded", "ending", "retrying", "completed"} {
		of.leave(t, name, name, false)
	}
	of.leave(t, "running", "compressed", true)
	before := maps.Clone(of.pods)

	// Without the flag, what FrameworkController has written of its CRD would be a conflict.
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "-k", "../../manifests/crds"); err == nil || !strings.Contains(out, "conflict") {
		t.Errorf("the documents say that there is a conflict with what FrameworkController wrote, and there is none: %v: %s", err, out)
	}
	installCRDs(t.Context(), t)
	recording := cluster.Record(t, namespace)
	cluster.StartController(t, localenv.ControllerOptions{}).WaitReady(t)

	for name, tasks := range map[string]frameworkv1.TaskCounts{
		"running":    {Total: 3, Running: 2, Succeeded: 1},
		"compressed": {Total: 3, Running: 2, Succeeded: 1},
		"negative":   {Total: 1, Running: 1},
		"unrecorded": {Total: 2, Running: 2},
	} {
		fw := cluster.WaitFramework(t, namespace, name, "go on as it was", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.Tasks != nil && *fw.Status.Tasks == tasks
		})
		if fw.Status.AttemptStatus.ID != 0 || fw.Status.RetryPolicyStatus.TotalRetriedCount != 0 {
			t.Errorf("%s was retried: attempt %d, %d retries", name, fw.Status.AttemptStatus.ID, fw.Status.RetryPolicyStatus.TotalRetriedCount)
		}
	}
	cluster.WaitFramework(t, namespace, "retrying", "run its second attempt", func(fw *frameworkv1.Framework) bool {
		return fw.Status.AttemptStatus.ID == 1 && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 1
	})
	cluster.WaitFramework(t, namespace, "ending", "end as it was decided", func(fw *frameworkv1.Framework) bool {
		return fw.Status.State == frameworkv1.FrameworkCompleted && fw.Status.AttemptStatus.CompletionStatus.Code == 0
	})
	completed := cluster.WaitFrameworkState(t, namespace, "completed", frameworkv1.FrameworkCompleted)
	if code := completed.Status.AttemptStatus.CompletionStatus.Code; code != 221 {
		t.Errorf("what was completed with code 221 has the code %d", code)
	}

	// What ran runs on: the same Pods, none of them restarted, and one more of the second attempt.
	delete(before, "ending-worker-0")
	after := map[string]types.UID{}
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Labels[frameworkv1.KeyFrameworkName] != "retrying" {
			after[pod.Name] = pod.UID
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("Pods have changed (-before, +after):\n%s", diff)
	}

	// From now on they are Lockstep's, with all that a user may ask of them.
	for _, name := range []string{"running", "compressed", "negative", "unrecorded"} {
		if out, err := cluster.Kubectl(t.Context(), "patch", "framework", name, "-n", namespace, "--type=json", "-p", `[{"op": "replace", "path": "/spec/executionType", "value": "Stop"}]`); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, name := range []string{"running", "compressed", "negative", "unrecorded"} {
		cluster.WaitFramework(t, namespace, name, "stop", func(fw *frameworkv1.Framework) bool {
			return fw.Status.State == frameworkv1.FrameworkCompleted && fw.Status.AttemptStatus.CompletionStatus.Code == -210
		})
	}
	recording.Check(t)
}

// installCRDs is the command by which docs/from-frameworkcontroller.md replaces the CRD.
func installCRDs(ctx context.Context, t *testing.T) {
	t.Helper()
	if out, err := cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", "../../manifests/crds"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// frameworkController writes what FrameworkController writes.
type frameworkController struct {
	namespace  string
	frameworks dynamic.ResourceInterface
	// pods are those that it has made, by name.
	pods map[string]types.UID
}

// leave makes the Framework of a file under a name, with its ConfigMap and its Pods. The words
// NOW, CONFIGMAP and POD with the index of a task stand in it for what is known only then. A large
// status is compressed.
func (f *frameworkController) leave(t *testing.T, file, name string, compressed bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(left, file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := strings.ReplaceAll(strings.ReplaceAll(string(text), file, name), "NOW", time.Now().UTC().Format(time.RFC3339))
	made, err := f.frameworks.Create(t.Context(), read(t, manifest, false), metav1.CreateOptions{FieldManager: "user"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(manifest, "CONFIGMAP") {
		configMap := f.createConfigMap(t, made)
		manifest = strings.ReplaceAll(manifest, "CONFIGMAP", string(configMap.UID))
		for index := range 2 {
			task := fmt.Sprintf("podName: %s-worker-%d\n", name, index)
			recorded := strings.Contains(manifest, fmt.Sprintf("podUID: POD%d", index))
			pending := strings.Contains(manifest, task+"          podUID: null")
			if recorded || pending {
				pod := f.createPod(t, configMap, index, read(t, manifest, true))
				manifest = strings.ReplaceAll(manifest, fmt.Sprintf("POD%d", index), string(pod.UID))
			}
		}
	}
	object := read(t, manifest, true)
	if compressed {
		compress(t, object)
	}
	object.SetResourceVersion(made.GetResourceVersion())
	object.SetUID(made.GetUID())
	if _, err := f.frameworks.Update(t.Context(), object, metav1.UpdateOptions{FieldManager: its}); err != nil {
		t.Fatal(err)
	}
}

// read reads a manifest, with or without its status.
func read(t *testing.T, manifest string, withStatus bool) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	if !withStatus {
		delete(object.Object, "status")
	}
	return object
}

// compress does to a status what largeFrameworkCompression does to a large one.
func compress(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	attempt, _, err := unstructured.NestedMap(object.Object, "status", "attemptStatus")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(attempt["taskRoleStatuses"])
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	attempt["taskRoleStatuses"] = nil
	attempt["taskRoleStatusesCompressed"] = base64.StdEncoding.EncodeToString(small.Bytes())
	if err := unstructured.SetNestedMap(object.Object, attempt, "status", "attemptStatus"); err != nil {
		t.Fatal(err)
	}
}

func (f *frameworkController) createConfigMap(t *testing.T, fw *unstructured.Unstructured) *corev1.ConfigMap {
	t.Helper()
	name := fw.GetName() + "-attempt"
	configMap, err := cluster.Kube.CoreV1().ConfigMaps(f.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{"FC_FRAMEWORK_NAME": fw.GetName()},
		Annotations: map[string]string{
			"FC_FRAMEWORK_NAMESPACE": f.namespace, "FC_FRAMEWORK_NAME": fw.GetName(), "FC_CONFIGMAP_NAME": name,
			"FC_FRAMEWORK_UID": string(fw.GetUID()), "FC_FRAMEWORK_ATTEMPT_ID": "0",
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fw, frameworkv1.SchemeGroupVersion.WithKind("Framework"))},
		Finalizers:      []string{metav1.FinalizerDeleteDependents},
	}}, metav1.CreateOptions{FieldManager: its})
	if err != nil {
		t.Fatal(err)
	}
	return configMap
}

// createPod makes the Pod of a task, and waits until it runs.
func (f *frameworkController) createPod(t *testing.T, configMap *corev1.ConfigMap, index int, fw *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	roles, _, err := unstructured.NestedSlice(fw.Object, "status", "attemptStatus", "taskRoleStatuses")
	if err != nil {
		t.Fatal(err)
	}
	uid := func(status any, path ...string) string {
		object, _ := status.(map[string]any)
		text, _, err := unstructured.NestedString(object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	tasks, _, err := unstructured.NestedSlice(roles[0].(map[string]any), "taskStatuses")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s-worker-%d", fw.GetName(), index)
	annotations := maps.Clone(configMap.Annotations)
	labels := map[string]string{"FC_FRAMEWORK_NAME": fw.GetName(), "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": fmt.Sprint(index)}
	maps.Copy(annotations, labels)
	maps.Copy(annotations, map[string]string{
		"FC_POD_NAME": name, "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": "0_" + string(configMap.UID), "FC_CONFIGMAP_UID": string(configMap.UID),
		"FC_TASKROLE_UID": uid(roles[0], "instanceUID"), "FC_TASK_UID": uid(tasks[index], "instanceUID"), "FC_TASK_ATTEMPT_ID": "0",
	})
	pod, err := cluster.Kube.CoreV1().Pods(f.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "lockstep.dev/simulated:any"}},
		},
	}, metav1.CreateOptions{FieldManager: its})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "wait", "pod/"+name, "-n", f.namespace, "--for=jsonpath={.status.phase}=Running", "--timeout=1m"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.pods[name] = pod.UID
	return pod
}
