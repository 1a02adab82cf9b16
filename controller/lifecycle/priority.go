// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// The class of a gang is given to its Pods if their template names none, so that quota and admission see the class by
// which the gang is ranked. A template with a class has the last word about the Pods.

// giveClass gives the Pod the PriorityClass of the gang. giveClass leaves a template alone that already has a class or
// a priority, because the API server refuses a priority that differs from the value of the class.
func (b *podBuilder) giveClass(pod *corev1.Pod) {
	if pod.Spec.PriorityClassName == "" && pod.Spec.Priority == nil {
		pod.Spec.PriorityClassName = b.attempt.Gang.PriorityClassName
	}
}

// warnOfLowerClasses warns, once per attempt, of roles whose template names a lower PriorityClass than the gang's. If a
// class is unknown, there is no warning.
func (d *decision) warnOfLowerClasses() {
	gang := d.next.AttemptStatus.Gang
	if d.PriorityOf == nil || gang == nil || !gang.Enabled || gang.PriorityClassName == "" {
		return
	}
	value, exists := d.PriorityOf(gang.PriorityClassName)
	if !exists {
		return
	}
	var lower []string
	for _, role := range d.Framework.Spec.TaskRoles {
		class := classOfTemplate(role.Task.Pod.Raw)
		if class == "" {
			continue
		}
		if own, exists := d.PriorityOf(class); exists && own < value {
			lower = append(lower, fmt.Sprintf("the Pod template of role %s sets the lower class %s", role.Name, class))
		}
	}
	if len(lower) > 0 {
		d.Tell(true, ReasonLowerPriorityClass, "The priority class of the gang is %s, but %s; these Pods may be preempted first",
			gang.PriorityClassName, text.Shorten(strings.Join(lower, ", "), mostClassesLength))
	}
}

// mostClassesLength bounds the part of the warning that names roles, in bytes.
const mostClassesLength = 512

// classOfTemplate returns spec.priorityClassName of a Pod template in JSON; "" if there is none.
func classOfTemplate(template []byte) string {
	var pod struct {
		Spec struct {
			PriorityClassName string `json:"priorityClassName"`
		} `json:"spec"`
	}
	if len(template) == 0 || json.Unmarshal(template, &pod) != nil {
		return ""
	}
	return pod.Spec.PriorityClassName
}
