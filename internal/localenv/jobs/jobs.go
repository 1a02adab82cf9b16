// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs builds Frameworks for simulated nodes, where annotations say how Pods end.
package jobs

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Annotations that say how a Pod on a simulated node ends; see
// localcluster/README.md.
const (
	AnnotationRunSeconds   = "simulate.lockstep.dev/run-seconds"
	AnnotationExitCode     = "simulate.lockstep.dev/exit-code"
	AnnotationFailAttempts = "simulate.lockstep.dev/fail-attempts"

	AnnotationFailTaskAttempts = "simulate.lockstep.dev/fail-task-attempts"
)

// Hold is the finalizer that Held gives to Pods, and a label by which these Pods are found.
const Hold = "e2e.lockstep.dev/hold"

// FrameworkBuilder builds a Framework.
type FrameworkBuilder struct {
	fw frameworkv1.Framework
}

// MakeFramework starts a Framework without roles that is not a gang.
func MakeFramework(name string) *FrameworkBuilder {
	return &FrameworkBuilder{fw: frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

// Retry sets the Framework's retry policy.
func (b *FrameworkBuilder) Retry(fancy bool, maxRetryCount int32) *FrameworkBuilder {
	b.fw.Spec.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: fancy, MaxRetryCount: maxRetryCount}
	return b
}

// Execution sets the Framework's execution type.
func (b *FrameworkBuilder) Execution(executionType frameworkv1.ExecutionType) *FrameworkBuilder {
	b.fw.Spec.ExecutionType = executionType
	return b
}

// Label gives the Framework a label.
func (b *FrameworkBuilder) Label(key, value string) *FrameworkBuilder {
	metav1.SetMetaDataLabel(&b.fw.ObjectMeta, key, value)
	return b
}

// Gang makes the Framework a gang of all its tasks.
func (b *FrameworkBuilder) Gang() *FrameworkBuilder {
	b.fw.Spec.Gang = &frameworkv1.GangSpec{}
	return b
}

// Role adds a role of tasks that run what task describes.
func (b *FrameworkBuilder) Role(name string, taskNumber int32, task *TaskBuilder) *FrameworkBuilder {
	b.fw.Spec.TaskRoles = append(b.fw.Spec.TaskRoles, frameworkv1.TaskRoleSpec{
		Name: name, TaskNumber: taskNumber,
		FrameworkAttemptCompletionPolicy: task.completion,
		Task:                             task.spec(),
	})
	return b
}

// Obj returns the Framework.
func (b *FrameworkBuilder) Obj() *frameworkv1.Framework {
	return b.fw.DeepCopy()
}

// TaskBuilder builds the tasks of a role.
type TaskBuilder struct {
	scheduler   string
	node        string
	held        bool
	cpu         string
	annotations map[string]string
	env         map[string]string
	retry       frameworkv1.RetryPolicySpec
	completion  frameworkv1.CompletionPolicySpec
	grace       *int64
}

// RunForever describes a task that never ends by itself.
func RunForever() *TaskBuilder {
	return &TaskBuilder{annotations: map[string]string{}, env: map[string]string{}}
}

// RunFor describes a task that runs for d, rounded to whole seconds, and then ends with an exit code.
func RunFor(d time.Duration, exitCode int) *TaskBuilder {
	b := RunForever()
	b.annotations[AnnotationRunSeconds] = strconv.Itoa(int(d.Seconds()))
	b.annotations[AnnotationExitCode] = strconv.Itoa(exitCode)
	return b
}

// InFirstAttempts makes only the first n attempts of the Framework end with the exit code of RunFor. Tasks of later
// attempts succeed.
func (b *TaskBuilder) InFirstAttempts(n int) *TaskBuilder {
	b.annotations[AnnotationFailAttempts] = strconv.Itoa(n)
	return b
}

// InFirstTaskAttempts makes only the first n attempts of each task end with the exit code of RunFor. Later attempts
// succeed.
func (b *TaskBuilder) InFirstTaskAttempts(n int) *TaskBuilder {
	b.annotations[AnnotationFailTaskAttempts] = strconv.Itoa(n)
	return b
}

// Retry sets the retry policy of the tasks.
func (b *TaskBuilder) Retry(fancy bool, maxRetryCount int32) *TaskBuilder {
	b.retry = frameworkv1.RetryPolicySpec{FancyRetryPolicy: fancy, MaxRetryCount: maxRetryCount}
	return b
}

// Completes sets the completion policy of the role.
func (b *TaskBuilder) Completes(minFailed, minSucceeded int32) *TaskBuilder {
	b.completion = frameworkv1.CompletionPolicySpec{MinFailedTaskCount: &minFailed, MinSucceededTaskCount: &minSucceeded}
	return b
}

// CPU sets what each task requests.
func (b *TaskBuilder) CPU(quantity string) *TaskBuilder {
	b.cpu = quantity
	return b
}

// Scheduler names the scheduler of the tasks.
func (b *TaskBuilder) Scheduler(name string) *TaskBuilder {
	b.scheduler = name
	return b
}

// Node binds the tasks to a node, past any scheduler.
func (b *TaskBuilder) Node(name string) *TaskBuilder {
	b.node = name
	return b
}

// Held keeps each deleted Pod of the tasks until ReleasePods removes its finalizer, as if its containers took that long
// to end.
func (b *TaskBuilder) Held() *TaskBuilder {
	b.held = true
	return b
}

// Env adds an environment variable to the container.
func (b *TaskBuilder) Env(name, value string) *TaskBuilder {
	b.env[name] = value
	return b
}

// Annotation adds an annotation to the Pods.
func (b *TaskBuilder) Annotation(key, value string) *TaskBuilder {
	b.annotations[key] = value
	return b
}

// GracefulDeletionTimeout sets podGracefulDeletionTimeoutSec.
func (b *TaskBuilder) GracefulDeletionTimeout(seconds int64) *TaskBuilder {
	b.grace = &seconds
	return b
}

func (b *TaskBuilder) spec() frameworkv1.TaskSpec {
	container := map[string]any{"name": "main", "image": "lockstep.dev/simulated:any", "imagePullPolicy": "Never"}
	if b.cpu != "" {
		container["resources"] = map[string]any{"requests": map[string]string{"cpu": b.cpu}}
	}
	var env []map[string]string
	for name, value := range b.env {
		env = append(env, map[string]string{"name": name, "value": value})
	}
	if env != nil {
		container["env"] = env
	}
	podSpec := map[string]any{"restartPolicy": "Never", "containers": []any{container}}
	if b.scheduler != "" {
		podSpec["schedulerName"] = b.scheduler
	}
	if b.node != "" {
		podSpec["nodeName"] = b.node
	}
	metadata := map[string]any{"annotations": b.annotations}
	if b.held {
		metadata["finalizers"] = []string{Hold}
		metadata["labels"] = map[string]string{Hold: "true"}
	}
	template, err := json.Marshal(map[string]any{"metadata": metadata, "spec": podSpec})
	if err != nil {
		panic(err) // never: maps, slices and strings can be marshalled
	}
	return frameworkv1.TaskSpec{
		RetryPolicy:                   b.retry,
		PodGracefulDeletionTimeoutSec: b.grace,
		Pod:                           runtime.RawExtension{Raw: template},
	}
}
