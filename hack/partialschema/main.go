// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Partialschema gives the CRD of Jobs the schemas of what their templates and claims
// are checked for. It is a step of make generate: controller-gen knows either the whole
// schema of a type, which drops fields of newer versions of Kubernetes, or none.
//
// A field that has to be right for anything to be made of it gets its schema. All other
// fields of the version that Lockstep is built with are listed, and may hold anything.
// That they are listed matters: rules that compare two templates notice when one field
// comes in the place of another, which they don't of fields that the schema doesn't know.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: partialschema FILE, the CRD of Jobs")
		os.Exit(2)
	}
	if err := complete(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "partialschema:", err)
		os.Exit(1)
	}
}

// complete puts the schemas into the CRD in a file.
func complete(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd schema
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	spec, err := partOf(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	var m maker
	for _, unknown := range []struct {
		path []any
		of   schema
	}{
		{[]any{"tasks", "items", "properties", "template"}, m.podTemplate()},
		{[]any{"volumes", "items", "properties", "volumeClaim"}, m.claim()},
	} {
		part, err := partOf(spec, unknown.path...)
		if err != nil {
			return fmt.Errorf("reading the spec in %s: %w", file, err)
		}
		maps.Copy(part, unknown.of)
	}
	if err := errors.Join(m.errs...); err != nil {
		return err
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), data...), 0o644)
}

// schema is the schema of an object, or a part of the CRD.
type schema = map[string]any

// partOf is the part of an object that is reached by the names of fields and the indexes of
// lists.
func partOf(object schema, path ...any) (schema, error) {
	var part any = object
	for i, step := range path {
		found := false
		switch step := step.(type) {
		case string:
			if fields, ok := part.(schema); ok {
				part, found = fields[step]
			}
		case int:
			if list, ok := part.([]any); ok && step < len(list) {
				part, found = list[step], true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no %v", path[:i+1])
		}
	}
	fields, ok := part.(schema)
	if !ok {
		return nil, fmt.Errorf("%v is a %T and no object", path, part)
	}
	return fields, nil
}

// maker makes schemas, and keeps what is wrong with them.
type maker struct {
	errs []error
}

// podTemplate asks for named containers and for quantities that can be read.
func (m *maker) podTemplate() schema {
	container := m.open(reflect.TypeFor[corev1.Container](), schema{
		"name":      schema{"type": "string", "minLength": 1},
		"resources": m.resources(reflect.TypeFor[corev1.ResourceRequirements]()),
	}, "name")
	// A list has no bound: no rule walks it.
	containers := schema{"type": "array", "items": container}
	atLeastOne := schema{"type": "array", "items": container, "minItems": 1}
	return m.open(reflect.TypeFor[corev1.PodTemplateSpec](), schema{
		"metadata": m.open(reflect.TypeFor[metav1.ObjectMeta](), nil),
		"spec": m.open(reflect.TypeFor[corev1.PodSpec](), schema{
			"containers":     atLeastOne,
			"initContainers": containers,
			"overhead":       quantities(),
			"resources":      m.resources(reflect.TypeFor[corev1.ResourceRequirements]()),
		}, "containers"),
	}, "spec")
}

// claim asks for quantities that can be read.
func (m *maker) claim() schema {
	return m.open(reflect.TypeFor[corev1.PersistentVolumeClaimSpec](), schema{
		"resources": m.resources(reflect.TypeFor[corev1.VolumeResourceRequirements]()),
	})
}

func (m *maker) resources(of reflect.Type) schema {
	return m.open(of, schema{"limits": quantities(), "requests": quantities()})
}

func quantities() schema {
	return schema{"type": "object", "additionalProperties": schema{
		"anyOf":                      []any{schema{"type": "integer"}, schema{"type": "string"}},
		"pattern":                    quantity,
		"x-kubernetes-int-or-string": true,
	}}
}

// quantity is the form of a quantity: what resource.ParseQuantity takes, with an exponent
// that no number needs more of.
const quantity = `^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?$`

// open is the schema of an object that may have any field. It lists those of the type, with
// the schemas that are known.
func (m *maker) open(of reflect.Type, known schema, required ...string) schema {
	properties := schema{}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		properties[name] = schema{preserve: true}
		if s, ok := known[name]; ok {
			properties[name] = s
		}
	}
	for name := range known {
		if _, ok := properties[name]; !ok {
			m.errs = append(m.errs, fmt.Errorf("%v has no field %s", of, name))
		}
	}
	s := schema{"type": "object", preserve: true, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// preserve keeps fields that the schema doesn't know.
const preserve = "x-kubernetes-preserve-unknown-fields"
