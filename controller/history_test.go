// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
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
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// historyLine is what log collectors take apart: the header of klog, the
// message, the trigger, and the object up to the end of the line.
var historyLine = regexp.MustCompile(`^I\d{4} \d{2}:\d{2}:\d{2}\.\d{6} +\d+ history\.go:\d+\] (.+): (On\w+): ObjectSnapshot: (.+)$`)

// LogBuffer is what the controller has logged.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *LogBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// CaptureLog logs as lockstep-controller does, but to a buffer.
func CaptureLog(t *testing.T) *LogBuffer {
	t.Helper()
	buffer := &LogBuffer{}
	state := klog.CaptureState()
	config := logsapi.NewLoggingConfiguration()
	config.Verbosity = 2
	options := &logsapi.LoggingOptions{ErrorStream: buffer, InfoStream: buffer}
	if err := logsapi.ValidateAndApplyWithOptions(config, options, nil); err != nil {
		t.Fatalf("setting up the log: %v", err)
	}
	klog.StopFlushDaemon() // It reads what other tests set.
	t.Cleanup(func() {
		state.Restore()
		if err := logsapi.ResetForTest(nil); err != nil {
			t.Errorf("resetting the log: %v", err)
		}
		klog.StopFlushDaemon()
	})
	return buffer
}

// SnapshotLine is a line of the history, taken apart.
type SnapshotLine struct {
	Message, Trigger string
	Data             []byte
	Object           map[string]any
}

// History takes the log apart as a collector does.
func (b *LogBuffer) History(t *testing.T) []SnapshotLine {
	t.Helper()
	var lines []SnapshotLine
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.Contains(line, "ObjectSnapshot") {
			continue
		}
		match := historyLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("a line that nobody can parse: %.300s", line)
		}
		snapshot := SnapshotLine{Message: match[1], Trigger: match[2], Data: []byte(match[3])}
		if err := json.Unmarshal(snapshot.Data, &snapshot.Object); err != nil {
			t.Fatalf("the object of %.300s: %v", line, err)
		}
		lines = append(lines, snapshot)
	}
	return lines
}

// Summary is a line without its object.
func (s SnapshotLine) Summary() string {
	return fmt.Sprintf("%s: %s: %v %v", s.Message, s.Trigger, s.Object["apiVersion"], s.Object["kind"])
}

// historian is a controller that logs everything. Nobody runs it.
func historian(t *testing.T) *Controller {
	t.Helper()
	return newIdle(t, apiserver.New(t).Process("controller"))
}

// showPod puts a Pod of a Framework into the caches, with its owners, and returns it.
func (c *Controller) showPod(t *testing.T, f *frameworkv1.Framework, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	f = f.DeepCopy()
	f.UID = "f-uid"
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fw-attempt", Namespace: namespace, UID: "c-uid",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f, frameworkv1.FrameworkGroupVersionKind)}}}
	if err := c.frameworks.GetStore().Add(&frameworkEntry{Framework: *f}); err != nil {
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
			c := historian(t)
			c.clock = clocktesting.NewFakePassiveClock(now)
			log := CaptureLog(t)
			f := f.DeepCopy()
			f.Spec.TaskRoles[0].Name = tc.role
			c.logHistory([]lifecycle.History{{
				Trigger: tc.trigger, Framework: f, Task: task,
				TaskRole: &frameworkv1.TaskRoleStatus{Name: "w", InstanceUID: "r-uid"},
			}})
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

func TestHistoryCanBeSwitchedOff(t *testing.T) {
	c := historian(t)
	for trigger := range c.history.on {
		c.history.on[trigger] = false
	}
	pod := c.showPod(t, framework(1), &corev1.Pod{})
	log := CaptureLog(t)
	f := framework(1)
	f.Status = &frameworkv1.FrameworkStatus{}
	for _, trigger := range []lifecycle.HistoryTrigger{
		lifecycle.OnFrameworkRetry, lifecycle.OnFrameworkDeletion, lifecycle.OnTaskRetry, lifecycle.OnTaskDeletion,
	} {
		c.logHistory([]lifecycle.History{{Trigger: trigger, Framework: f,
			TaskRole: &frameworkv1.TaskRoleStatus{}, Task: &frameworkv1.TaskStatus{}}})
	}
	c.logFrameworkDeletion(&frameworkEntry{Framework: *f})
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
	log, seen := CaptureLog(t), 0
	logged := func(mask configv1alpha1.MaskEnv) string {
		t.Helper()
		c := historian(t)
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
		c.logHistory(entries)
		c.logFrameworkDeletion(&frameworkEntry{Framework: *f})
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
			c := historian(t)
			log := CaptureLog(t)
			f := framework(1)
			f.Annotations = map[string]string{"note": text}
			f.Spec.Description = text
			f.Status = &frameworkv1.FrameworkStatus{AttemptStatus: frameworkv1.FrameworkAttemptStatus{
				CompletionStatus: &frameworkv1.FrameworkAttemptCompletionStatus{
					CompletionStatus: lifecycle.Completion(1, text),
				},
			}}
			c.logHistory([]lifecycle.History{{Trigger: lifecycle.OnFrameworkRetry, Framework: f}})
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
