// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// attempted is a Framework with the given gang and template whose ConfigMap was
// created, and its status.
func attempted(t *testing.T, gang *frameworkv1.GangSpec, template string) (*frameworkv1.Framework, *frameworkv1.FrameworkStatus) {
	t.Helper()
	f := framework(role("w", 2))
	f.Spec.Gang = gang
	f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(template)
	w := newWorld(t, f)
	status := Decide(Snapshot{Framework: f, Options: w.options}, w.now, w).Status
	status.AttemptStatus.ConfigMapUID = ptr.To(types.UID("cm"))
	status.AttemptStatus.InstanceUID = ptr.To(types.UID("0_cm"))
	return f, status
}

func build(t *testing.T, f *frameworkv1.Framework, status *frameworkv1.FrameworkStatus, index int32) *corev1.Pod {
	t.Helper()
	pod, err := recipe(f, status, index)()
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// recipe is how a decision on that status has a Pod of the first role built.
func recipe(f *frameworkv1.Framework, status *frameworkv1.FrameworkStatus, index int32) func() (*corev1.Pod, error) {
	d := newDecision(Snapshot{Framework: f, Known: plan.Known[frameworkv1.FrameworkStatus]{Status: status}, Options: Options{GangSchedulerName: "lockstep-scheduler"}}, time.Time{}, nil)
	role := d.next.AttemptStatus.TaskRoleStatuses[0]
	build := cursor{d: d, role: role, spec: d.specRoles[role.Name], index: int(index)}.podRecipe()
	return func() (*corev1.Pod, error) {
		object, err := build()
		if err != nil {
			return nil, err
		}
		return object.(*corev1.Pod), nil
	}
}

func TestPodHasItsIdentity(t *testing.T) {
	f, status := attempted(t, nil, `{
		"metadata": {
			"name": "mine", "generateName": "g-", "namespace": "elsewhere",
			"labels": {"app": "train", "FC_TASK_INDEX": "99"},
			"annotations": {"note": "kept"},
			"ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "s", "uid": "su"}]
		},
		"spec": {
			"initContainers": [{"name": "init", "terminationMessagePolicy": "File"}],
			"containers": [{"name": "main", "env": [{"name": "MINE", "value": "$(FC_TASK_INDEX)"}]}]
		}}`)
	pod := build(t, f, status, 1)

	if pod.Name != "fw-w-1" || pod.Namespace != "ns" || pod.GenerateName != "" {
		t.Errorf("got %s/%s (generateName %q), want ns/fw-w-1", pod.Namespace, pod.Name, pod.GenerateName)
	}
	wantLabels := map[string]string{
		"app": "train", "FC_FRAMEWORK_NAME": "fw", "FC_TASKROLE_NAME": "w", "FC_TASK_INDEX": "1",
	}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Errorf("unexpected labels (-want +got):\n%s", diff)
	}
	wantAnnotations := []string{
		"FC_CONFIGMAP_NAME", "FC_CONFIGMAP_UID", "FC_FRAMEWORK_ATTEMPT_ID", "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID",
		"FC_FRAMEWORK_NAME", "FC_FRAMEWORK_NAMESPACE", "FC_FRAMEWORK_UID", "FC_POD_NAME", "FC_TASKROLE_NAME",
		"FC_TASKROLE_UID", "FC_TASK_ATTEMPT_ID", "FC_TASK_INDEX", "FC_TASK_UID", "note",
	}
	if diff := cmp.Diff(wantAnnotations, slices.Sorted(maps.Keys(pod.Annotations))); diff != "" {
		t.Errorf("unexpected annotations (-want +got):\n%s", diff)
	}
	if len(pod.OwnerReferences) != 2 || pod.OwnerReferences[1].UID != "cm" ||
		!*pod.OwnerReferences[1].Controller || !*pod.OwnerReferences[1].BlockOwnerDeletion {
		t.Errorf("owner references %v, want the user's and then the ConfigMap as controller", pod.OwnerReferences)
	}
	wantEnv := []string{
		"FC_FRAMEWORK_NAMESPACE=ns", "FC_FRAMEWORK_NAME=fw", "FC_TASKROLE_NAME=w", "FC_TASK_INDEX=1",
		"FC_CONFIGMAP_NAME=fw-attempt", "FC_POD_NAME=fw-w-1", "FC_FRAMEWORK_UID=" + string(f.UID),
		"FC_FRAMEWORK_ATTEMPT_ID=0", "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID=0_cm", "FC_CONFIGMAP_UID=cm",
		"FC_TASKROLE_UID=" + string(status.AttemptStatus.TaskRoleStatuses[0].InstanceUID),
		"FC_TASK_UID=" + string(status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1].InstanceUID),
		"FC_TASK_ATTEMPT_ID=0", "FC_POD_UID=metadata.uid", "FC_TASK_ATTEMPT_INSTANCE_UID=0_$(FC_POD_UID)",
	}
	if diff := cmp.Diff(wantEnv, environment(pod.Spec.InitContainers[0])); diff != "" {
		t.Errorf("unexpected environment of the init container (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(wantEnv, "MINE=$(FC_TASK_INDEX)"), environment(pod.Spec.Containers[0])); diff != "" {
		t.Errorf("unexpected environment of the container (-want +got):\n%s", diff)
	}
	if got := pod.Spec.InitContainers[0].TerminationMessagePolicy; got != corev1.TerminationMessageReadFile {
		t.Errorf("the user's termination message policy became %s", got)
	}
	if got := pod.Spec.Containers[0].TerminationMessagePolicy; got != corev1.TerminationMessageFallbackToLogsOnError {
		t.Errorf("termination message policy %s, want FallbackToLogsOnError", got)
	}
}

func environment(container corev1.Container) []string {
	var env []string
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = variable.ValueFrom.FieldRef.FieldPath
		}
		env = append(env, variable.Name+"="+value)
	}
	return env
}

func TestPlaceholders(t *testing.T) {
	f, status := attempted(t, nil, `{
		"metadata": {"labels": {"{{FC_TASKROLE_NAME}}-key": "{{FC_FRAMEWORK_NAMESPACE}}"}},
		"spec": {"hostname": "{{FC_POD_NAME}}", "containers": [{"name": "main",
			"args": ["{{FC_FRAMEWORK_NAME}}", "{{FC_TASK_INDEX}}", "{{FC_CONFIGMAP_NAME}}", "{{FC_POD_UID}}", "{{other}}"]}]}}`)
	pod := build(t, f, status, 1)
	if got := pod.Labels["w-key"]; got != "ns" {
		t.Errorf("label w-key is %q, want ns", got)
	}
	if pod.Spec.Hostname != "fw-w-1" {
		t.Errorf("hostname is %q, want fw-w-1", pod.Spec.Hostname)
	}
	want := []string{"fw", "1", "fw-attempt", "{{FC_POD_UID}}", "{{other}}"}
	if diff := cmp.Diff(want, pod.Spec.Containers[0].Args); diff != "" {
		t.Errorf("unexpected arguments (-want +got):\n%s", diff)
	}
}

func TestGangPods(t *testing.T) {
	tests := map[string]struct {
		gang          *frameworkv1.GangSpec
		template      string
		wantScheduler string
		wantGroup     string
	}{
		"no gang": {template: podTemplate},
		"spec.gang chooses the scheduler": {
			gang: &frameworkv1.GangSpec{}, template: podTemplate,
			wantScheduler: "lockstep-scheduler", wantGroup: "fw-attempt",
		},
		"the template's scheduler stays": {
			gang: &frameworkv1.GangSpec{}, template: `{"spec":{"schedulerName":"mine"}}`,
			wantScheduler: "mine", wantGroup: "fw-attempt",
		},
		"naming the gang scheduler makes a gang": {
			template:      `{"spec":{"schedulerName":"lockstep-scheduler"}}`,
			wantScheduler: "lockstep-scheduler", wantGroup: "fw-attempt",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, status := attempted(t, tc.gang, tc.template)
			pod := build(t, f, status, 0)
			if pod.Spec.SchedulerName != tc.wantScheduler {
				t.Errorf("scheduler %q, want %q", pod.Spec.SchedulerName, tc.wantScheduler)
			}
			if got := pod.Labels[schedulingv1alpha1.LabelPodGroup]; got != tc.wantGroup {
				t.Errorf("group %q, want %q", got, tc.wantGroup)
			}
			if got := pod.Labels[schedulingv1alpha1.LabelRole]; (got == "w") != (tc.wantGroup != "") {
				t.Errorf("role label %q of a Pod in group %q", got, tc.wantGroup)
			}
		})
	}
}

func TestTemplateWithAQuantityThatWouldBeReadForEverNamesTheField(t *testing.T) {
	f, status := attempted(t, nil, `{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1.0000000000000000001e2000000000"}}}]}}`)
	_, err := recipe(f, status, 0)()
	if err == nil || !strings.Contains(err.Error(), "task.pod.spec.containers[0].resources.limits.cpu: must be a quantity with an exponent from -999 to 999") {
		t.Errorf("got %v", err)
	}
}

// Two names of a map may be one when their placeholders are replaced: the first value is read, too.
func TestPlaceholdersHideNoQuantityThatWouldBeReadForEver(t *testing.T) {
	f, status := attempted(t, nil, `{"spec":{"containers":[{"name":"c","resources":{"limits":{"{{FC_TASKROLE_NAME}}":"1.0000000000000000001e2000000000","w":"1"}}}]}}`)
	_, err := recipe(f, status, 0)()
	if err == nil || !strings.Contains(err.Error(), "task.pod.spec.containers[0].resources.limits.w: must be a quantity with an exponent from -999 to 999") {
		t.Errorf("got %v", err)
	}
}

func TestTemplateThatIsNoPodNamesTheField(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"fixed template":        {`{"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}}`, "env.value"},
		"template of all tasks": {`{"spec":{"containers":[{"name":"{{FC_TASK_INDEX}}","ports":"80"}]}}`, "ports"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, status := attempted(t, nil, tc.template)
			_, err := recipe(f, status, 0)()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "spec.taskRoles[w].task.pod") {
				t.Errorf("got %v, want an error that names the role and %s", err, tc.want)
			}
		})
	}
}

// TestATemplateDecidesNeitherNameNorNamespace of the Pod, nor by whom it is known: what the
// controller goes by is its own.
func TestATemplateDecidesNeitherNameNorNamespace(t *testing.T) {
	f, status := attempted(t, nil, `{"metadata": {"name": "other", "generateName": "other-", "namespace": "kube-system",
		"labels": {"FC_TASK_INDEX": "7"}, "annotations": {"FC_POD_NAME": "other", "FC_TASK_UID": "other"}},
		"spec": {"containers": [{"name": "c", "image": "i"}]}}`)
	pod := build(t, f, status, 0)
	task := status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]
	if pod.Name != task.AttemptStatus.PodName || pod.GenerateName != "" || pod.Namespace != f.Namespace {
		t.Errorf("the Pod is %s/%s (%s)", pod.Namespace, pod.Name, pod.GenerateName)
	}
	if pod.Labels[frameworkv1.KeyTaskIndex] != "0" || pod.Annotations[frameworkv1.KeyPodName] != pod.Name || pod.Annotations[frameworkv1.KeyTaskUID] != string(task.InstanceUID) {
		t.Errorf("the Pod is known by %v and %v", pod.Labels, pod.Annotations)
	}
}
