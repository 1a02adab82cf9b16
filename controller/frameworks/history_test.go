// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/testing/historylog"
)

const namespace = "ns"

// framework makes a Framework with one role w.
func framework(tasks int32) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "fw", Namespace: namespace, Generation: 1},
		Spec: frameworkv1.FrameworkSpec{
			ExecutionType: frameworkv1.ExecutionStart,
			TaskRoles: []frameworkv1.TaskRoleSpec{{
				Name: "w", TaskNumber: tasks,
				Task: frameworkv1.TaskSpec{Pod: runtime.RawExtension{
					Raw: []byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`)}},
			}},
		},
	}
}

// newCore makes a core with default settings, which logs everything. Nobody runs it.
func newCore(t *testing.T) *Core {
	t.Helper()
	config := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetDefaults(config)
	rest := &rest.Config{Host: "http://nobody.invalid"}
	kube, err := kubernetes.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	lockstep, err := versioned.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	idle := func(kind runtime.Object) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, kind, cache.SharedIndexInformerOptions{})
	}
	c, err := New(kube, lockstep, idle(&schedulingv1alpha1.PodGroup{}), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.frameworks = idle(&frameworkv1.Framework{})
	return c
}

// showPod puts a Pod of a Framework into the caches, with its owners, and returns it.
func (c *Core) showPod(t *testing.T, f *frameworkv1.Framework, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	f = f.DeepCopy()
	f.UID = "f-uid"
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fw-attempt", Namespace: namespace, UID: "c-uid",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f, frameworkv1.FrameworkGroupVersionKind)}}}
	if err := c.frameworks.GetStore().Add(f); err != nil {
		t.Fatal(err)
	}
	if err := c.configMaps.GetStore().Add(configMap); err != nil {
		t.Fatal(err)
	}
	pod = pod.DeepCopy()
	pod.Namespace = namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	return pod
}

func TestTaskInTheHistory(t *testing.T) {
	started := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now := metav1.NewTime(started.Add(time.Hour))
	f := framework(3)
	f.UID, f.ResourceVersion, f.Generation = "f-uid", "42", 7
	f.Status = &frameworkv1.FrameworkStatus{AttemptStatus: frameworkv1.FrameworkAttemptStatus{
		ID: 4, ConfigMapName: "fw-attempt", ConfigMapUID: ptr.To[types.UID]("c-uid"), InstanceUID: ptr.To[types.UID]("4_c-uid"),
	}}
	task := &frameworkv1.TaskStatus{
		Index: 2, InstanceUID: "t-uid", StartTime: started, State: frameworkv1.TaskCompleted,
		AttemptStatus: frameworkv1.TaskAttemptStatus{ID: 1, PodName: "fw-w-2"},
	}
	metadata := map[string]any{
		"name": "fw-w-2", "namespace": "ns", "uid": "t-uid", "resourceVersion": "42", "generation": 7.0,
		"creationTimestamp": "2026-01-01T00:00:00Z",
		"labels":            map[string]any{"FC_FRAMEWORK_NAME": "fw", "FC_TASKROLE_NAME": "w", "FC_TASK_INDEX": "2"},
		"annotations": map[string]any{
			"FC_FRAMEWORK_NAMESPACE": "ns", "FC_FRAMEWORK_NAME": "fw", "FC_TASKROLE_NAME": "w", "FC_TASK_INDEX": "2",
			"FC_CONFIGMAP_NAME": "fw-attempt", "FC_FRAMEWORK_UID": "f-uid", "FC_FRAMEWORK_ATTEMPT_ID": "4",
			"FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": "4_c-uid", "FC_CONFIGMAP_UID": "c-uid", "FC_TASKROLE_UID": "r-uid",
		},
	}
	deleted := map[string]any{"deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": 0.0}
	tests := map[string]struct {
		trigger      lifecycle.HistoryTrigger
		role         string
		wantMetadata []map[string]any
		wantSpec     bool
	}{
		"a retried task":              {trigger: lifecycle.OnTaskRetry, role: "w", wantMetadata: []map[string]any{metadata}, wantSpec: true},
		"a deleted task":              {trigger: lifecycle.OnTaskDeletion, role: "w", wantMetadata: []map[string]any{metadata, deleted}, wantSpec: true},
		"a task whose role went away": {trigger: lifecycle.OnTaskDeletion, role: "v", wantMetadata: []map[string]any{metadata, deleted}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			log := historylog.Capture(t)
			f := f.DeepCopy()
			f.Spec.TaskRoles[0].Name = tc.role
			c.logHistory([]lifecycle.History{{
				Trigger: tc.trigger, Framework: f, Task: task,
				TaskRole: &frameworkv1.TaskRoleStatus{Name: "w", InstanceUID: "r-uid"},
			}}, now.Time)
			want := map[string]any{}
			for _, part := range tc.wantMetadata {
				for key, value := range part {
					want[key] = value
				}
			}
			object := log.History(t)[0].Object
			if diff := cmp.Diff(want, object["metadata"]); diff != "" {
				t.Errorf("unexpected metadata (-want +got):\n%s", diff)
			}
			if (object["spec"] != nil) != tc.wantSpec {
				t.Errorf("the spec is %v", object["spec"])
			}
			if status := object["status"].(map[string]any); status["index"] != 2.0 || status["state"] != "Completed" {
				t.Errorf("the status is %v", status)
			}
		})
	}
}

// TestTheHistoryOfOnePlanIsBounded: the template of a role is there once, where there are many. Where they are few, each line
// has it.
func TestTheHistoryOfOnePlanIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		tasks, template int
		wantWhole       int
		wantBytes       int
	}{
		"ten thousand tasks with a template of 128 KiB": {tasks: 10_000, template: 128 << 10, wantWhole: 8, wantBytes: 16 << 20},
		"a hundred tasks with one of 4 KiB":             {tasks: 100, template: 4 << 10, wantWhole: 100, wantBytes: 1 << 20},
		"two tasks with one of a MiB and more":          {tasks: 2, template: 1<<20 + 1, wantWhole: 1, wantBytes: 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			f := framework(int32(tc.tasks))
			head, tail := `{"spec":{"containers":[{"args":["`, `"]}]}}`
			template := head + strings.Repeat("x", tc.template-len(head)-len(tail)) + tail
			f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(template)
			f.Spec.TaskRoles[0].Task.PodGracefulDeletionTimeoutSec = ptr.To[int64](30)
			f.Status = &frameworkv1.FrameworkStatus{}
			role := &frameworkv1.TaskRoleStatus{Name: "w"}
			var entries []lifecycle.History
			for i := range tc.tasks {
				task := &frameworkv1.TaskStatus{Index: int32(i), InstanceUID: types.UID(fmt.Sprint("task-", i))}
				entries = append(entries, lifecycle.History{Trigger: lifecycle.OnTaskRetry, Framework: f, TaskRole: role, Task: task})
			}
			log := historylog.Capture(t)
			newCore(t).logHistory(entries, time.Now())
			lines, whole, bytes := log.History(t), 0, 0
			for i, line := range lines {
				bytes += len(line.Data)
				spec, metadata := line.Object["spec"].(map[string]any), line.Object["metadata"].(map[string]any)
				pod, there := spec["pod"]
				if !there || spec["podGracefulDeletionTimeoutSec"] != 30.0 || metadata["uid"] != fmt.Sprint("task-", i) {
					t.Fatalf("line %d lacks what is no template: %.300s", i, line.Data)
				}
				if pod != nil {
					whole++
				} else if in := metadata["annotations"].(map[string]any)["lockstep.dev/pod-template-in"]; in != "task-0" {
					t.Fatalf("line %d says that its template is in the line of %v, and it was first in that of task-0", i, in)
				}
			}
			if len(lines) != tc.tasks || whole != tc.wantWhole || bytes > tc.wantBytes {
				t.Errorf("%d lines of %d bytes, of which %d have the template, want %d lines of %d bytes at most and %d", len(lines), bytes, whole, tc.tasks, tc.wantBytes, tc.wantWhole)
			}
		})
	}
}

func TestHistoryCanBeSwitchedOff(t *testing.T) {
	c := newCore(t)
	for trigger := range c.history.on {
		c.history.on[trigger] = false
	}
	pod := c.showPod(t, framework(1), &corev1.Pod{})
	log := historylog.Capture(t)
	f := framework(1)
	f.Status = &frameworkv1.FrameworkStatus{}
	for _, trigger := range []lifecycle.HistoryTrigger{
		lifecycle.OnFrameworkRetry, lifecycle.OnFrameworkDeletion, lifecycle.OnTaskRetry, lifecycle.OnTaskDeletion,
	} {
		c.logHistory([]lifecycle.History{{Trigger: trigger, Framework: f,
			TaskRole: &frameworkv1.TaskRoleStatus{}, Task: &frameworkv1.TaskStatus{}}}, time.Now())
	}
	c.logFrameworkDeletion(f, nil)
	c.logPodDeletion(pod)
	if got := log.String(); got != "" {
		t.Errorf("logged all the same: %s", got)
	}
}

// TestHistoryHidesSecrets logs objects with a secret in every place where an
// environment may be, in a template that is no Pod template, too. Without the secret
// itself, the lines are what they are if nothing is masked.
func TestHistoryHidesSecrets(t *testing.T) {
	const secret = "hunter2"
	env := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: name, Value: secret}, {Name: "A", Value: "shown"}}
	}
	template := fmt.Sprintf(`{"spec":{"containers":[{"name":"main","env":[{"name":"DB_PASSWORD","value":%q},{"name":"A","value":"shown"}]}]}}`, secret)
	noTemplate := fmt.Sprintf(`{"spec":{"containers":{"env":[{"value":%q,"name":"API_KEY"}],"image":["a < b"]}}}`, secret)
	applied := fmt.Sprintf(`{"spec":{"taskRoles":[{"task":{"pod":%s}}]}}`+"\n", template)

	f := framework(1)
	f.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: applied}
	f.Spec.TaskRoles = append(f.Spec.TaskRoles, f.Spec.TaskRoles[0])
	f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(template)
	f.Spec.TaskRoles[1].Name, f.Spec.TaskRoles[1].Task.Pod.Raw = "v", []byte(noTemplate)
	f.Status = &frameworkv1.FrameworkStatus{}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "fw-w-0", Namespace: namespace, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: applied},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Env: env("CLIENT_SECRET")}},
			Containers:     []corev1.Container{{Name: "main", Env: env("hf_token")}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Env: env("GoogleCredentials"),
			}}},
		},
	}
	log, seen := historylog.Capture(t), 0
	logged := func(mask configv1alpha1.MaskEnv) string {
		t.Helper()
		c := newCore(t)
		pod := c.showPod(t, f, pod)
		c.history = newHistoryLog(configv1alpha1.LogObjectSnapshot{MaskEnv: mask})
		var entries []lifecycle.History
		for _, trigger := range []lifecycle.HistoryTrigger{
			lifecycle.OnFrameworkRetry, lifecycle.OnFrameworkDeletion, lifecycle.OnTaskRetry, lifecycle.OnTaskDeletion,
		} {
			for _, role := range []string{"w", "v"} {
				entries = append(entries, lifecycle.History{Trigger: trigger, Framework: f,
					TaskRole: &frameworkv1.TaskRoleStatus{Name: role}, Task: &frameworkv1.TaskStatus{}})
			}
		}
		c.logHistory(entries, time.Unix(1_000_000, 0))
		c.logFrameworkDeletion(f, nil)
		c.logPodDeletion(pod)
		var lines []string
		for _, line := range log.History(t)[seen:] {
			lines = append(lines, line.Summary(), string(line.Data))
			seen++
		}
		if len(lines) != 2*10 {
			t.Fatalf("%d lines, want 10 and their objects", len(lines))
		}
		return strings.Join(lines, "\n")
	}

	before := []any{f.DeepCopy(), pod.DeepCopy()}
	plain := logged(configv1alpha1.MaskEnv{Policy: ptr.To(configv1alpha1.MaskEnvNone)})
	if n := strings.Count(plain, secret); n < 15 {
		t.Fatalf("%d secrets in a history in which nothing is masked, want all", n)
	}
	if diff := cmp.Diff(strings.ReplaceAll(plain, secret, "***"), logged(configv1alpha1.MaskEnv{})); diff != "" {
		t.Errorf("the history by default (-want,+got):\n%s", diff)
	}
	all := logged(configv1alpha1.MaskEnv{Policy: ptr.To(configv1alpha1.MaskEnvAll)})
	if diff := cmp.Diff(strings.NewReplacer(secret, "***", "shown", "***").Replace(plain), all); diff != "" {
		t.Errorf("the history with all variables masked (-want,+got):\n%s", diff)
	}
	chosen := logged(configv1alpha1.MaskEnv{NameFragments: []string{"dsn"}})
	if diff := cmp.Diff(plain, chosen); diff != "" {
		t.Errorf("the history with names that don't occur (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(before, []any{f, pod}); diff != "" {
		t.Errorf("what is cached has changed (-want,+got):\n%s", diff)
	}
}

// TestHistoryTakesDataAsItIs logs what would be a format to fmt, what would end a
// line, and what is large.
func TestHistoryTakesDataAsItIs(t *testing.T) {
	tests := map[string]string{
		"a format":     "100%s %d %!v(MISSING) %%",
		"line breaks":  "first\nsecond\r\nthird\u2028fourth",
		"the marker":   ": ObjectSnapshot: {}",
		"HTML":         `<a href="x">&</a>`,
		"two megabyte": strings.Repeat("long ", 2<<20/5),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			log := historylog.Capture(t)
			f := framework(1)
			f.Annotations = map[string]string{"note": text}
			f.Spec.Description = text
			f.Status = &frameworkv1.FrameworkStatus{AttemptStatus: frameworkv1.FrameworkAttemptStatus{
				CompletionStatus: &frameworkv1.FrameworkAttemptCompletionStatus{
					CompletionStatus: lifecycle.Completion(1, text),
				},
			}}
			c.logHistory([]lifecycle.History{{Trigger: lifecycle.OnFrameworkRetry, Framework: f}}, time.Now())
			if lines := strings.Count(log.String(), "\n"); lines != 1 {
				t.Fatalf("%d lines, want 1", lines)
			}
			// The first marker of the line is the one that counts.
			_, data, _ := strings.Cut(strings.TrimSuffix(log.String(), "\n"), ": ObjectSnapshot: ")
			got := &frameworkv1.Framework{}
			if err := json.Unmarshal([]byte(data), got); err != nil {
				t.Fatal(err)
			}
			if got.Annotations["note"] != text || got.Spec.Description != text ||
				got.Status.AttemptStatus.CompletionStatus.Diagnostics != text {
				t.Errorf("the text has become %.200q", got.Spec.Description)
			}
		})
	}
}
