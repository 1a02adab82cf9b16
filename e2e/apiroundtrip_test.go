//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

var (
	frameworks = frameworkv1.SchemeGroupVersion.WithResource(frameworkv1.FrameworkPlural)
	podGroups  = schedulingv1alpha1.SchemeGroupVersion.WithResource(schedulingv1alpha1.PodGroupPlural)
)

// asWritten reads and writes objects as the API server has them, with what no
// Go type knows.
func asWritten(t *testing.T, resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(resource).Namespace(namespace)
}

// fromYAML reads a mapping in YAML.
func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	value := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	// Numbers as the API server's JSON decoder gives them.
	return (&unstructured.Unstructured{Object: normal(value).(map[string]any)}).Object
}

// normal turns whole float64 numbers into int64.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = normal(v[key])
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case float64:
		return int64(v)
	}
	return value
}

// TestSpecIsStoredWithDefaultsAndAsWritten gives the spec that is stored for a
// spec that is written. What is not in the table is stored as it is written.
func TestSpecIsStoredWithDefaultsAndAsWritten(t *testing.T) {
	tests := map[string]struct {
		kind          string
		written, want string
	}{
		"an empty Framework gets all defaults": {
			kind:    "Framework",
			written: "{}",
			want:    "{executionType: Start, retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}}",
		},
		"a role gets all defaults, and a gang none: they depend on the tasks": {
			kind:    "Framework",
			written: "{executionType: Create, gang: {}, taskRoles: [{name: worker}]}",
			want: `
executionType: Create
retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}
gang: {}
taskRoles:
- name: worker
  taskNumber: 0
  frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: -1}
  task: {retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}}`,
		},
		"what is written as zero, false, empty or null stays so": {
			kind: "Framework",
			written: `
description: null
executionType: Create
retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}
taskRoles:
- name: worker
  taskNumber: 0
  frameworkAttemptCompletionPolicy: {minFailedTaskCount: 0, minSucceededTaskCount: 0}
  task:
    retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}
    podGracefulDeletionTimeoutSec: null
    pod: {}
- name: ps
  taskNumber: 0
  frameworkAttemptCompletionPolicy: {minFailedTaskCount: -1, minSucceededTaskCount: -1}
  task:
    retryPolicy: {fancyRetryPolicy: false, maxRetryCount: -2}
    podGracefulDeletionTimeoutSec: 0
    pod: {spec: {}}`,
		},
		"what is written as null and can't be becomes the default": {
			kind:    "Framework",
			written: "{executionType: null, retryPolicy: null, taskRoles: [{name: worker, taskNumber: null, frameworkAttemptCompletionPolicy: null, task: null}]}",
			want: `
executionType: Start
retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}
taskRoles:
- name: worker
  taskNumber: 0
  frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: -1}
  task: {retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}}`,
		},
		"a Pod template keeps what no version of Kubernetes knows": {
			kind: "Framework",
			written: `
executionType: Create
retryPolicy: {fancyRetryPolicy: true, maxRetryCount: -2}
taskRoles:
- name: worker
  taskNumber: 0
  frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: -1}
  task:
    retryPolicy: {fancyRetryPolicy: false, maxRetryCount: 0}
    pod:
      metadata: {labels: {a: b}, futureKey: [1, two, null]}
      spec:
        futureField: {nested: [{deep: true}], nothing: null}
        containers: [{name: main, image: "{{FC_POD_NAME}}", warpDrive: 9}]`,
		},
		"a PodGroup gets its defaults": {
			kind:    "PodGroup",
			written: "{minMember: 2}",
			want:    "{minMember: 2, queue: default, disruptionMode: Gang}",
		},
	}
	namespace := cluster.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			resource, version := frameworks, frameworkv1.SchemeGroupVersion
			if tc.kind == schedulingv1alpha1.PodGroupKind {
				resource, version = podGroups, schedulingv1alpha1.SchemeGroupVersion
			}
			if tc.want == "" {
				tc.want = tc.written
			}
			created, err := asWritten(t, resource, namespace).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": version.String(),
				"kind":       tc.kind,
				"metadata":   map[string]any{"generateName": "stored-"},
				"spec":       fromYAML(t, tc.written),
			}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fromYAML(t, tc.want), created.Object["spec"]); diff != "" {
				t.Errorf("spec (-want,+got):\n%s", diff)
			}
		})
	}
}

// everyNull is a status in which everything that may be null is.
const everyNull = `
state: AttemptCreationPending
startTime: null
runTime: null
completionTime: null
transitionTime: null
retryPolicyStatus: {totalRetriedCount: 0, accountableRetriedCount: 0, retryDelaySec: null}
attemptStatus:
  id: 0
  startTime: null
  runTime: null
  completionTime: null
  instanceUID: null
  configMapName: nulls-attempt
  configMapUID: null
  completionStatus: null
  podGroup:
    name: nulls-attempt
    uid: ""
    creationTime: null
    unknownSince: null
    minMember: 1
    scheduled: 0
    running: 0
    unschedulable: null
  taskRoleStatusesCompressed: null
  taskRoleStatuses:
  - name: empty
    instanceUID: a
    podGracefulDeletionTimeoutSec: null
    taskStatuses: null
  - name: worker
    instanceUID: b
    podGracefulDeletionTimeoutSec: 0
    taskStatuses:
    - index: 0
      instanceUID: c
      startTime: null
      runTime: null
      completionTime: null
      state: AttemptCreationPending
      transitionTime: null
      deletionPending: false
      retryPolicyStatus: {totalRetriedCount: 0, accountableRetriedCount: 0, retryDelaySec: null}
      attemptStatus:
        id: 0
        startTime: null
        runTime: null
        completionTime: null
        instanceUID: null
        podName: nulls-worker-0
        podUID: null
        podNodeName: null
        podIP: null
        podHostIP: null
        completionStatus:
          code: 0
          phrase: ""
          type: {name: Failed, attributes: null}
          diagnostics: ""`

// TestNullsInTheStatusStay writes a status without persisting it, so that the
// controller is not disturbed: clients of FrameworkController rely on nulls that
// are there.
func TestNullsInTheStatusStay(t *testing.T) {
	namespace := submit(t, jobs.MakeFramework("nulls").Execution(frameworkv1.ExecutionCreate).Obj())
	client := asWritten(t, frameworks, namespace)
	for name, status := range map[string]any{"the whole status is null": nil, "every field is null": fromYAML(t, everyNull)} {
		t.Run(name, func(t *testing.T) {
			var got *unstructured.Unstructured
			err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
				fw, err := client.Get(t.Context(), "nulls", metav1.GetOptions{})
				if err != nil {
					return err
				}
				fw.Object["status"] = status
				got, err = client.UpdateStatus(t.Context(), fw, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status, got.Object["status"]); diff != "" {
				t.Errorf("status (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestUnknownFieldsSurviveOtherWrites changes a Framework as a user's program
// and a controller do, with Go types that know less than the template holds.
func TestUnknownFieldsSurviveOtherWrites(t *testing.T) {
	const template = "{metadata: {futureKey: 1}, spec: {futureField: {deep: [1, null, {x: true}]}, containers: [{name: main, image: busybox, warpDrive: 9}]}}"
	namespace := cluster.Namespace(t)
	output, err := cluster.KubectlApply(t.Context(), namespace, manifestOf("Framework", "future",
		"{executionType: Create, taskRoles: [{name: worker, taskNumber: 1, task: {pod: "+template+"}}]}"))
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	typed := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace)
	change := func(write func(ctx context.Context, fw *frameworkv1.Framework) error) {
		t.Helper()
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			fw, err := typed.Get(t.Context(), "future", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return write(t.Context(), fw)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	change(func(ctx context.Context, fw *frameworkv1.Framework) error {
		fw.Spec.Description = "changed"
		_, err := typed.Update(ctx, fw, metav1.UpdateOptions{})
		return err
	})
	change(func(ctx context.Context, fw *frameworkv1.Framework) error {
		if fw.Status == nil {
			fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCreationPending}
		}
		fw.Status.ObservedGeneration++
		_, err := typed.UpdateStatus(ctx, fw, metav1.UpdateOptions{})
		return err
	})

	got, err := asWritten(t, frameworks, namespace).Get(t.Context(), "future", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roles, _, err := unstructured.NestedSlice(got.Object, "spec", "taskRoles")
	if err != nil {
		t.Fatal(err)
	}
	pod, _, err := unstructured.NestedMap(roles[0].(map[string]any), "task", "pod")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromYAML(t, template), pod); diff != "" {
		t.Errorf("template (-want,+got):\n%s", diff)
	}
}

// TestSpecAndStatusAreApart writes both at once by either way.
func TestSpecAndStatusAreApart(t *testing.T) {
	namespace := cluster.Namespace(t)
	typed := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace)
	fw := jobs.MakeFramework("apart").Execution(frameworkv1.ExecutionCreate).Obj()
	fw.Status = &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted}

	created, err := typed.Create(t.Context(), fw, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.Status != nil {
		t.Errorf("create: status is %+v, want none", created.Status)
	}

	patch := []byte(`{"spec": {"description": "mine"}, "status": {"state": "Completed"}}`)
	updated, err := typed.Patch(t.Context(), fw.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.Description != "mine" || (updated.Status != nil && updated.Status.State == frameworkv1.FrameworkCompleted) {
		t.Errorf("update: description %q and status %+v, want the description and no forged status", updated.Spec.Description, updated.Status)
	}

	patch = []byte(`{"spec": {"description": "theirs"}, "status": {"state": "Completed"}}`)
	updated, err = typed.Patch(t.Context(), fw.Name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.Description != "mine" || updated.Status == nil || updated.Status.State != frameworkv1.FrameworkCompleted {
		t.Errorf("update of status: description %q and status %+v, want the status and the old description", updated.Spec.Description, updated.Status)
	}
}
