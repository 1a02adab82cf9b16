// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// historyLine is what log collectors take apart: the header of klog, the
// message, the trigger, and the object up to the end of the line.
var historyLine = regexp.MustCompile(`^I\d{4} \d{2}:\d{2}:\d{2}\.\d{6} +\d+ history\.go:\d+\] (.+): (On\w+): ObjectSnapshot: (.+)$`)

// logBuffer is what the controller has logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// captureLog logs as lockstep-controller does, but to a buffer.
func captureLog(t *testing.T) *logBuffer {
	t.Helper()
	buffer := &logBuffer{}
	state := klog.CaptureState()
	config := logsapi.NewLoggingConfiguration()
	config.Verbosity = 2
	options := &logsapi.LoggingOptions{ErrorStream: buffer, InfoStream: buffer}
	if err := logsapi.ValidateAndApplyWithOptions(config, options, nil); err != nil {
		t.Fatalf("setting up the log: %v", err)
	}
	t.Cleanup(func() {
		state.Restore()
		if err := logsapi.ResetForTest(nil); err != nil {
			t.Errorf("resetting the log: %v", err)
		}
	})
	return buffer
}

// snapshotLine is a line of the history, taken apart.
type snapshotLine struct {
	message, trigger string
	data             []byte
	object           map[string]any
}

// history takes the log apart as a collector does.
func (b *logBuffer) history(t *testing.T) []snapshotLine {
	t.Helper()
	var lines []snapshotLine
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.Contains(line, "ObjectSnapshot") {
			continue
		}
		match := historyLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("a line that nobody can parse: %.300s", line)
		}
		snapshot := snapshotLine{message: match[1], trigger: match[2], data: []byte(match[3])}
		if err := json.Unmarshal(snapshot.data, &snapshot.object); err != nil {
			t.Fatalf("the object of %.300s: %v", line, err)
		}
		lines = append(lines, snapshot)
	}
	return lines
}

// summary is a line without its object.
func (s snapshotLine) summary() string {
	return fmt.Sprintf("%s: %s: %v %v", s.message, s.trigger, s.object["apiVersion"], s.object["kind"])
}

func summaries(lines []snapshotLine) []string {
	var texts []string
	for _, line := range lines {
		texts = append(texts, line.summary())
	}
	return texts
}

// logEverything turns on what the worlds turn off.
func (w *world) logEverything() {
	for trigger := range w.controller.history.on {
		w.controller.history.on[trigger] = true
	}
}

func TestHistoryOfDecisions(t *testing.T) {
	f := framework(2)
	f.Spec.RetryPolicy.MaxRetryCount = 1
	f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 1
	f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1)
	w := newWorld(t, f)
	w.logEverything()
	log := captureLog(t)

	rounds := func(n int, exit func(*corev1.Pod) int32) {
		for range n {
			if err := w.sync(); err != nil {
				t.Fatal(err)
			}
			w.live(exit)
		}
	}
	rounds(2, succeed)
	w.framework.Spec.TaskRoles[0].TaskNumber = 1
	rounds(40, func(*corev1.Pod) int32 { return 1 })
	w.clock.SetTime(w.clock.Now().Add(31 * 24 * time.Hour))
	rounds(1, succeed)

	got := log.history(t)
	want := []string{
		"syncTaskState: Task will be deleted: OnTaskDeletion: frameworkcontroller.microsoft.com/v1 Task",
		"syncTaskState: Task will be retried: OnTaskRetry: frameworkcontroller.microsoft.com/v1 Task",
		"syncFrameworkState: Framework will be retried: OnFrameworkRetry: frameworkcontroller.microsoft.com/v1 Framework",
		"syncTaskState: Task will be retried: OnTaskRetry: frameworkcontroller.microsoft.com/v1 Task",
		"syncFrameworkState: Framework will be deleted: OnFrameworkDeletion: frameworkcontroller.microsoft.com/v1 Framework",
	}
	if diff := cmp.Diff(want, summaries(got)); diff != "" {
		t.Fatalf("unexpected history (-want +got):\n%s", diff)
	}
	retried := &frameworkv1.Framework{}
	if err := json.Unmarshal(got[2].data, retried); err != nil {
		t.Fatal(err)
	}
	status := retried.Status
	if status.State != frameworkv1.FrameworkAttemptCompleted || status.AttemptStatus.ID != 0 ||
		status.AttemptStatus.CompletionStatus.Code != 1 || len(status.AttemptStatus.TaskRoleStatuses) != 1 {
		t.Errorf("the retried attempt is logged as %+v", status)
	}
}

// TestHistoryOverACrash lets the controller die after any write: whatever is
// overwritten was logged, by it or by its successor.
func TestHistoryOverACrash(t *testing.T) {
	for crashAfter, crashed := 0, true; crashed; crashAfter++ {
		crashed = false
		t.Run(fmt.Sprintf("after %d writes", crashAfter), func(t *testing.T) {
			f := framework(2)
			f.Spec.RetryPolicy.MaxRetryCount = 1
			f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 1
			w := newWorld(t, f)
			w.logEverything()
			w.budget = crashAfter
			log := captureLog(t)
			for round := range 40 {
				if round == 2 {
					w.framework.Spec.TaskRoles[0].TaskNumber = 1
				}
				if err := w.sync(); err != nil {
					t.Fatal(err)
				}
				if w.crashed {
					crashed = true
					w.restart()
					w.logEverything()
				}
				w.live(func(pod *corev1.Pod) int32 {
					if pod.Annotations[frameworkv1.KeyFrameworkAttemptID] == "0" {
						return 1
					}
					return 0
				})
			}
			logged := map[string]bool{}
			for _, line := range log.history(t) {
				logged[line.trigger] = true
			}
			want := map[string]bool{"OnTaskDeletion": true, "OnTaskRetry": true, "OnFrameworkRetry": true}
			if diff := cmp.Diff(want, logged); diff != "" {
				t.Errorf("unexpected triggers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTaskInTheHistory(t *testing.T) {
	started := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now := started.Add(time.Hour)
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
			w := newWorld(t, framework(1))
			w.logEverything()
			w.clock.SetTime(now)
			log := captureLog(t)
			f := f.DeepCopy()
			f.Spec.TaskRoles[0].Name = tc.role
			w.controller.logHistory([]lifecycle.History{{
				Trigger: tc.trigger, Framework: f, Task: task,
				TaskRole: &frameworkv1.TaskRoleStatus{Name: "w", InstanceUID: "r-uid"},
			}})
			want := map[string]any{}
			for _, part := range tc.wantMetadata {
				for key, value := range part {
					want[key] = value
				}
			}
			object := log.history(t)[0].object
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

// TestHistoryOfEvents runs the informers, and deletes a Framework and Pods.
func TestHistoryOfEvents(t *testing.T) {
	w := newWorld(t, framework(1))
	frameworks := cachetesting.NewFakeControllerSource()
	w.frameworks = frameworks
	w.restart()
	w.logEverything()
	log := captureLog(t)
	entry := &frameworkEntry{Framework: *w.framework, storedStatus: []byte(`{"state":"Completed"}`)}
	frameworks.Add(entry)
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "fw-attempt", Namespace: namespace, UID: "c-uid",
		Labels:          map[string]string{frameworkv1.KeyFrameworkName: "fw"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.framework, frameworkv1.FrameworkGroupVersionKind)},
	}}
	podOf := func(name string, owner types.UID) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: namespace, UID: types.UID(name),
				Labels:      map[string]string{frameworkv1.KeyFrameworkName: "fw"},
				Annotations: map[string]string{"note": "100%d %s %!"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
					&metav1.ObjectMeta{Name: "fw-attempt", UID: owner}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
		}
	}
	tracker := w.kube.Tracker()
	for _, pod := range []*corev1.Pod{podOf("fw-w-0", "c-uid"), podOf("stranger", "another")} {
		if err := tracker.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := tracker.Add(owned); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait) // before the log is given back: informers use it too
	for _, informer := range []cache.SharedIndexInformer{w.controller.frameworks, w.controller.pods, w.controller.configMaps} {
		running.Go(func() { informer.RunWithContext(t.Context()) })
	}
	if !cache.WaitForCacheSync(t.Context().Done(), w.controller.frameworks.HasSynced, w.controller.pods.HasSynced, w.controller.configMaps.HasSynced) {
		t.Fatal("the caches are not filled")
	}

	for i, name := range []string{"stranger", "fw-w-0"} {
		if err := tracker.Delete(corev1.SchemeGroupVersion.WithResource("pods"), namespace, name); err != nil {
			t.Fatal(err)
		}
		waitFor(t, fmt.Sprintf("the end of %s", name), func() bool {
			return len(w.controller.pods.GetStore().ListKeys()) == 1-i
		})
	}
	waitFor(t, "the line about the Pod", func() bool { return strings.Contains(log.String(), "OnPodDeletion") })
	frameworks.Delete(entry)
	waitFor(t, "the line about the Framework", func() bool { return strings.Contains(log.String(), "OnFrameworkDeletion") })

	got := log.history(t)
	want := []string{
		"enqueueFrameworkObj: Framework Pod Deleted: OnPodDeletion: v1 Pod",
		"enqueueFrameworkObj: Framework Deleted: OnFrameworkDeletion: frameworkcontroller.microsoft.com/v1 Framework",
	}
	if diff := cmp.Diff(want, summaries(got)); diff != "" {
		t.Fatalf("unexpected history (-want +got):\n%s", diff)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(got[0].data, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Name != "fw-w-0" || pod.Annotations["note"] != "100%d %s %!" || pod.Spec.Containers[0].Image != "busybox" {
		t.Errorf("the Pod is logged as %s", got[0].data)
	}
	if got := got[1].object["status"]; got == nil || got.(map[string]any)["state"] != "Completed" {
		t.Errorf("the status is logged as %v", got)
	}
}

func TestHistoryCanBeSwitchedOff(t *testing.T) {
	w := newWorld(t, framework(1))
	for trigger := range w.controller.history.on {
		w.controller.history.on[trigger] = false
	}
	w.fill()
	log := captureLog(t)
	f := framework(1)
	f.Status = &frameworkv1.FrameworkStatus{}
	for _, trigger := range []lifecycle.HistoryTrigger{
		lifecycle.OnFrameworkRetry, lifecycle.OnFrameworkDeletion, lifecycle.OnTaskRetry, lifecycle.OnTaskDeletion,
	} {
		w.controller.logHistory([]lifecycle.History{{Trigger: trigger, Framework: f,
			TaskRole: &frameworkv1.TaskRoleStatus{}, Task: &frameworkv1.TaskStatus{}}})
	}
	w.controller.logFrameworkDeletion(&frameworkEntry{Framework: *f})
	w.controller.logPodDeletion(&corev1.Pod{})
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
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(
				&metav1.ObjectMeta{Name: "fw-attempt", UID: "c-uid"}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init", Env: env("CLIENT_SECRET")}},
			Containers:     []corev1.Container{{Name: "main", Env: env("hf_token")}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: "debug", Env: env("GoogleCredentials"),
			}}},
		},
	}
	log, seen := captureLog(t), 0
	logged := func(mask configv1alpha1.MaskEnv) string {
		t.Helper()
		w := newWorld(t, f.DeepCopy())
		w.fill()
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fw-attempt", Namespace: namespace, UID: "c-uid",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.framework, frameworkv1.FrameworkGroupVersionKind)}}}
		if err := w.controller.configMaps.GetStore().Add(configMap); err != nil {
			t.Fatal(err)
		}
		w.controller.history = newHistoryLog(configv1alpha1.LogObjectSnapshot{MaskEnv: mask})
		var entries []lifecycle.History
		for _, trigger := range []lifecycle.HistoryTrigger{
			lifecycle.OnFrameworkRetry, lifecycle.OnFrameworkDeletion, lifecycle.OnTaskRetry, lifecycle.OnTaskDeletion,
		} {
			for _, role := range []string{"w", "v"} {
				entries = append(entries, lifecycle.History{Trigger: trigger, Framework: f,
					TaskRole: &frameworkv1.TaskRoleStatus{Name: role}, Task: &frameworkv1.TaskStatus{}})
			}
		}
		w.controller.logHistory(entries)
		w.controller.logFrameworkDeletion(&frameworkEntry{Framework: *f})
		w.controller.logPodDeletion(pod)
		var lines []string
		for _, line := range log.history(t)[seen:] {
			lines = append(lines, line.summary(), string(line.data))
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
			w := newWorld(t, framework(1))
			w.logEverything()
			log := captureLog(t)
			f := framework(1)
			f.Annotations = map[string]string{"note": text}
			f.Spec.Description = text
			f.Status = &frameworkv1.FrameworkStatus{AttemptStatus: frameworkv1.FrameworkAttemptStatus{
				CompletionStatus: &frameworkv1.FrameworkAttemptCompletionStatus{
					CompletionStatus: lifecycle.Completion(1, text),
				},
			}}
			w.controller.logHistory([]lifecycle.History{{Trigger: lifecycle.OnFrameworkRetry, Framework: f}})
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

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
