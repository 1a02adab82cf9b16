// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// CheckTemplate returns an error if a template, in JSON, would be too large for Pods once its placeholders are
// replaced. oldnew alternates placeholders and values. The decoded template is checked by CheckContainers.
func CheckTemplate(role, template string, oldnew []string) error {
	if err := checkTemplateValues(role, template); err != nil {
		return err
	}
	return checkTemplateSize(role, replacedSize(template, oldnew))
}

// checkTemplateSize refuses a template that has more than jobpods.MaxTemplateBytes bytes.
func checkTemplateSize(role string, bytes int) error {
	if bytes > jobpods.MaxTemplateBytes {
		return fmt.Errorf("spec.taskRoles[%s].task.pod must have at most %d bytes, has %d with its placeholders replaced",
			role, jobpods.MaxTemplateBytes, bytes)
	}
	return nil
}

// checkTemplateValues refuses a template, as JSON, that has too many values. checkTemplateValues does not count
// strings, which take no more memory than their bytes. Placeholders occur only in strings.
func checkTemplateValues(role, template string) error {
	if values := text.CountSigns(template, "{[,"); values > jobpods.MaxTemplateValues {
		return fmt.Errorf("spec.taskRoles[%s].task.pod must have at most %d JSON values, has %d", role, jobpods.MaxTemplateValues, values)
	}
	return nil
}

// CheckContainers refuses a template that has too many containers.
func CheckContainers(role string, spec *corev1.PodSpec) error {
	containers := len(spec.Containers) + len(spec.InitContainers) + len(spec.EphemeralContainers)
	if containers > jobpods.MaxContainers {
		return fmt.Errorf("spec.taskRoles[%s].task.pod must have at most %d containers, init containers included, has %d",
			role, jobpods.MaxContainers, containers)
	}
	return nil
}

// replacedSize returns the size of a text in bytes once each old string in oldnew is replaced by the new string that
// follows it. Old strings don't overlap.
func replacedSize(text string, oldnew []string) int {
	size := len(text)
	for i := 0; i+1 < len(oldnew); i += 2 {
		size += strings.Count(text, oldnew[i]) * (len(oldnew[i+1]) - len(oldnew[i]))
	}
	return size
}
