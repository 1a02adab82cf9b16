// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/quantity"
)

// podBuilder builds the Pods of one role of an attempt from the template in the spec. Several goroutines may use a
// podBuilder.
type podBuilder struct {
	framework *frameworkv1.Framework
	attempt   *frameworkv1.FrameworkAttemptStatus
	role      *frameworkv1.TaskRoleStatus
	template  string
	// decoded is the template, if the same for all tasks.
	decoded *corev1.PodTemplateSpec
}

// podRecipe returns a function that builds the Pod of the task's present attempt. What the Pods of a role have in
// common is prepared once.
func (t cursor) podRecipe() func() (metav1.Object, error) {
	builder := t.d.podBuilders[t.role.Name]
	if builder == nil {
		framework, attempt, role, spec := t.d.Framework, &t.d.next.AttemptStatus, t.role, t.spec
		builder = sync.OnceValues(func() (*podBuilder, error) { return newPodBuilder(framework, attempt, role, spec) })
		t.d.podBuilders[t.role.Name] = builder
	}
	task := t.status()
	return func() (metav1.Object, error) {
		b, err := builder()
		if err != nil {
			return nil, errTemplate{err}
		}
		pod, err := b.build(task)
		if err != nil {
			return nil, errTemplate{err}
		}
		return pod, nil
	}
}

// newPodBuilder returns a builder for the Pods of a role. If no Pod can be built from the template, it returns an error
// that says why.
func newPodBuilder(framework *frameworkv1.Framework, attempt *frameworkv1.FrameworkAttemptStatus, role *frameworkv1.TaskRoleStatus,
	spec *frameworkv1.TaskRoleSpec) (*podBuilder, error) {
	b := &podBuilder{
		framework: framework,
		attempt:   attempt,
		role:      role,
		template:  string(spec.Task.Pod.Raw),
	}
	if err := checkTemplateValues(role.Name, b.template); err != nil {
		return nil, err
	}
	if strings.Contains(b.template, "{{FC_") {
		return b, nil
	}
	if err := checkTemplateSize(role.Name, len(b.template)); err != nil {
		return nil, err
	}
	decoded, err := b.decode(b.template)
	if err != nil {
		return nil, err
	}
	b.decoded = decoded
	return b, nil
}

// build returns the Pod of a task's present attempt. If no Pod can be built from the template, it returns an error that
// says why.
func (b *podBuilder) build(task *frameworkv1.TaskStatus) (*corev1.Pod, error) {
	var template *corev1.PodTemplateSpec
	if b.decoded != nil {
		template = b.decoded.DeepCopy()
	} else {
		replaced, err := b.replacePlaceholders(task)
		if err != nil {
			return nil, err
		}
		if template, err = b.decode(replaced); err != nil {
			return nil, err
		}
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	b.identify(pod, task)
	b.inject(pod, task)
	b.joinGang(pod)
	b.goWhereAdmitted(pod)
	return pod, nil
}

func (b *podBuilder) decode(template string) (*corev1.PodTemplateSpec, error) {
	decoded := &corev1.PodTemplateSpec{}
	if template == "" {
		return decoded, nil
	}
	if err := quantity.CheckJSON([]byte(template)); err != nil {
		return nil, fmt.Errorf("spec.taskRoles[%s].task.pod.%w", b.role.Name, err)
	}
	if err := json.Unmarshal([]byte(template), decoded); err != nil {
		return nil, fmt.Errorf("spec.taskRoles[%s].task.pod is no Pod template: %w", b.role.Name, err)
	}
	if err := CheckContainers(b.role.Name, &decoded.Spec); err != nil {
		return nil, err
	}
	return decoded, nil
}

// replacePlaceholders replaces {{FC_…}} everywhere in the template's JSON. The values contain no characters that JSON
// escapes. Unknown placeholders stay. If the result would be too long, replacePlaceholders returns an error.
func (b *podBuilder) replacePlaceholders(task *frameworkv1.TaskStatus) (string, error) {
	placeholders := []string{
		"{{" + frameworkv1.KeyFrameworkNamespace + "}}", b.framework.Namespace,
		"{{" + frameworkv1.KeyFrameworkName + "}}", b.framework.Name,
		"{{" + frameworkv1.KeyTaskRoleName + "}}", b.role.Name,
		"{{" + frameworkv1.KeyTaskIndex + "}}", strconv.Itoa(int(task.Index)),
		"{{" + frameworkv1.KeyConfigMapName + "}}", b.attempt.ConfigMapName,
		"{{" + frameworkv1.KeyPodName + "}}", task.AttemptStatus.PodName,
	}
	if err := checkTemplateSize(b.role.Name, replacedSize(b.template, placeholders)); err != nil {
		return "", err
	}
	return strings.NewReplacer(placeholders...).Replace(b.template), nil
}

// identify sets the Pod's name, owner, labels and annotations. It overwrites labels and annotations of the same names
// in the user's template, and keeps the others.
func (b *podBuilder) identify(pod *corev1.Pod, task *frameworkv1.TaskStatus) {
	index := strconv.Itoa(int(task.Index))
	pod.Name = task.AttemptStatus.PodName
	pod.GenerateName = ""
	pod.Namespace = b.framework.Namespace
	pod.OwnerReferences = append(pod.OwnerReferences, configMapOwner(b.attempt))
	pod.Labels = jobpods.With(pod.Labels, attemptLabels(b.framework))
	pod.Labels = jobpods.With(pod.Labels, map[string]string{
		frameworkv1.KeyTaskRoleName: b.role.Name,
		frameworkv1.KeyTaskIndex:    index,
	})
	pod.Annotations = jobpods.With(pod.Annotations, attemptAnnotations(b.framework, b.attempt))
	pod.Annotations = jobpods.With(pod.Annotations, map[string]string{
		frameworkv1.KeyTaskRoleName:                b.role.Name,
		frameworkv1.KeyTaskIndex:                   index,
		frameworkv1.KeyPodName:                     task.AttemptStatus.PodName,
		frameworkv1.KeyFrameworkAttemptInstanceUID: string(*b.attempt.InstanceUID),
		frameworkv1.KeyConfigMapUID:                string(*b.attempt.ConfigMapUID),
		frameworkv1.KeyTaskRoleUID:                 string(b.role.InstanceUID),
		frameworkv1.KeyTaskUID:                     string(task.InstanceUID),
		frameworkv1.KeyTaskAttemptID:               strconv.Itoa(int(task.AttemptStatus.ID)),
	})
}

// inject adds the task's identity as environment variables to every container and init container, before the user's
// variables, which may refer to them. inject also makes the end of the log replace a missing termination message, for
// better diagnostics.
func (b *podBuilder) inject(pod *corev1.Pod, task *frameworkv1.TaskStatus) {
	env := b.environment(task)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Env = append(append(make([]corev1.EnvVar, 0, len(env)+len(containers[i].Env)), env...), containers[i].Env...)
			if containers[i].TerminationMessagePolicy == "" {
				containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
	}
}

// environment returns the task's identity as variables. FC_POD_UID comes first among the two UIDs, because
// FC_TASK_ATTEMPT_INSTANCE_UID refers to it.
func (b *podBuilder) environment(task *frameworkv1.TaskStatus) []corev1.EnvVar {
	attemptID := strconv.Itoa(int(task.AttemptStatus.ID))
	value := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	return []corev1.EnvVar{
		value(frameworkv1.KeyFrameworkNamespace, b.framework.Namespace),
		value(frameworkv1.KeyFrameworkName, b.framework.Name),
		value(frameworkv1.KeyTaskRoleName, b.role.Name),
		value(frameworkv1.KeyTaskIndex, strconv.Itoa(int(task.Index))),
		value(frameworkv1.KeyConfigMapName, b.attempt.ConfigMapName),
		value(frameworkv1.KeyPodName, task.AttemptStatus.PodName),
		value(frameworkv1.KeyFrameworkUID, string(b.framework.UID)),
		value(frameworkv1.KeyFrameworkAttemptID, strconv.Itoa(int(b.attempt.ID))),
		value(frameworkv1.KeyFrameworkAttemptInstanceUID, string(*b.attempt.InstanceUID)),
		value(frameworkv1.KeyConfigMapUID, string(*b.attempt.ConfigMapUID)),
		value(frameworkv1.KeyTaskRoleUID, string(b.role.InstanceUID)),
		value(frameworkv1.KeyTaskUID, string(task.InstanceUID)),
		value(frameworkv1.KeyTaskAttemptID, attemptID),
		{Name: frameworkv1.KeyPodUID, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"},
		}},
		value(frameworkv1.KeyTaskAttemptInstanceUID, attemptID+"_$("+frameworkv1.KeyPodUID+")"),
	}
}

// joinGang makes the Pod a member of the attempt's PodGroup.
func (b *podBuilder) joinGang(pod *corev1.Pod) {
	gang := b.attempt.Gang
	if gang == nil || !gang.Enabled {
		return
	}
	pod.Labels[schedulingv1alpha1.LabelPodGroup] = frameworkv1.PodGroupName(b.framework.Name)
	pod.Labels[schedulingv1alpha1.LabelRole] = b.role.Name
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = gang.SchedulerName
	}
	b.giveClass(pod)
}
