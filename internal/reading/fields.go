// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/internal/unknownfields"
	"github.com/lockstep-k8s/lockstep/internal/why"
)

// maxTemplates bounds about how many templates of a job the API server is asked.
const maxTemplates = 16

// unknownFields returns lines about fields in a job's Pod templates that the API server drops. No condition of a
// Volcano Job or a training job names such fields, and events about them expire. The API server answers only users who
// may create Pods.
func (r *Reader) unknownFields(ctx context.Context, job *Job) []string {
	if !r.AsksAboutFields {
		return nil
	}
	var paths []string
	templates := templatesOf(job.Object)
	for _, template := range templates[:min(maxTemplates, len(templates))] {
		fields, err := unknownfields.Of(ctx, r.Kube.CoreV1().RESTClient(), job.Namespace, template.json)
		if err != nil {
			continue
		}
		for _, field := range fields {
			paths = append(paths, template.path+"."+field)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return []string{why.Dropped(unknownfields.Message(paths))}
}

type podTemplate struct {
	path string
	json []byte
}

// templatesOf returns the Pod templates of a job: of the tasks of a Volcano Job, or of the types of replicas of a
// training job.
func templatesOf(job *unstructured.Unstructured) []podTemplate {
	var templates []podTemplate
	add := func(path string, of any) {
		fields, _ := of.(map[string]any)
		if text, err := json.Marshal(fields["template"]); err == nil {
			templates = append(templates, podTemplate{path + ".template", text})
		}
	}
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	tasks, _ := spec["tasks"].([]any)
	for i, task := range tasks {
		add(fmt.Sprintf("spec.tasks[%d]", i), task)
	}
	for field, value := range spec {
		types, _ := value.(map[string]any)
		if !strings.HasSuffix(field, "ReplicaSpecs") {
			continue
		}
		for name, replicas := range types {
			add("spec."+field+"."+name, replicas)
		}
	}
	slices.SortFunc(templates, func(a, b podTemplate) int { return strings.Compare(a.path, b.path) })
	return templates
}
