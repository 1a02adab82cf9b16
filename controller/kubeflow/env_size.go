// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxText is the longest argument, and variable with its name, with which Linux starts a process:
// MAX_ARG_STRLEN, but for the sign at its end.
const maxText = 128<<10 - 1

// tooLong says what the programs of a job would be told that no process can be started with.
// Empty if all is well. The last Pod of each type is looked at: none has longer texts.
func (b *builder) tooLong() string {
	for _, t := range b.types {
		if t.number == 0 {
			continue
		}
		last := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: b.kind.mainContainer(&t.template.Spec).Name}}}}
		b.kind.tell(b, &podMaking{Pod: last, of: t, index: t.number - 1})
		c := &last.Spec.Containers[0]
		for _, env := range c.Env {
			c.Args = append(c.Args, env.Name+"="+env.Value)
		}
		for _, told := range c.Args {
			if len(told) <= maxText {
				continue
			}
			name, _, _ := strings.Cut(told, "=")
			field, help := b.kind.field, "a shorter name, or fewer replicas"
			if name == rdzvConf {
				field, help = "elasticPolicy.rdzvConf", "fewer settings"
			}
			return fmt.Sprintf("spec.%s: %s would have %d characters, and no process starts with more than %d: use %s", field, name, len(told), maxText, help)
		}
	}
	return ""
}
