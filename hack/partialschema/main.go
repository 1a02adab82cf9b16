// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Partialschema gives CRDs of jobs the schemas of what their templates and claims are
// checked for. It is a step of make generate: controller-gen knows either the whole
// schema of a type, which drops fields of newer versions of Kubernetes, or none.
//
// A field that has to be right for anything to be made of it gets its schema. All other
// fields of the version that Lockstep is built with are listed, and may hold anything.
// That they are listed matters: rules that compare two templates notice when one field
// comes in the place of another, which they don't of fields that the schema doesn't know.
// Of Kubeflow's kinds no rule compares templates, so only what rules look at is listed.
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: partialschema FILE..., CRDs of jobs")
		os.Exit(2)
	}
	for _, file := range os.Args[1:] {
		if err := complete(file); err != nil {
			fmt.Fprintln(os.Stderr, "partialschema:", err)
			os.Exit(1)
		}
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
	for _, version := range crd["spec"].(schema)["versions"].([]any) {
		version := version.(schema)
		spec := propertyOf(version["schema"].(schema)["openAPIV3Schema"].(schema), "spec")
		switch name := crd["metadata"].(schema)["name"]; name {
		case "jobs.batch.volcano.sh":
			merge(propertyOf(propertyOf(spec, "tasks")["items"].(schema), "template"), podTemplate())
			merge(propertyOf(propertyOf(spec, "volumes")["items"].(schema), "volumeClaim"), claim())
		case "tfjobs.kubeflow.org":
			merge(templateOf(spec, "tfReplicaSpecs"), replicaTemplate())
			if version["name"] == "v1alpha2" {
				// The only difference between both schemas: it tells by which version a job was made.
				propertyOf(spec, "createdAs")["default"] = "v1alpha2"
			}
		case "pytorchjobs.kubeflow.org":
			merge(templateOf(spec, "pytorchReplicaSpecs"), replicaTemplate())
		case "xgboostjobs.kubeflow.org":
			merge(templateOf(spec, "xgbReplicaSpecs"), replicaTemplate())
		case "paddlejobs.kubeflow.org":
			merge(templateOf(spec, "paddleReplicaSpecs"), replicaTemplate())
		case "jaxjobs.kubeflow.org":
			merge(templateOf(spec, "jaxReplicaSpecs"), replicaTemplate())
		case "mpijobs.kubeflow.org":
			merge(templateOf(spec, "mpiReplicaSpecs"), replicaTemplate())
			propertyOf(propertyOf(spec, "runPolicy"), "managedBy")["enum"] = []any{
				"", kubeflowv1.ManagedByLockstep, kubeflowv1.ManagedByMPIOperator, kubeflowv1.ManagedByMultiKueue,
			}
		default:
			return fmt.Errorf("%s has the CRD %v, of which nothing is known", file, name)
		}
	}
	if data, err = yaml.Marshal(crd); err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), data...), 0o644)
}

// templateOf is the template of each type of replicas.
func templateOf(spec schema, replicas string) schema {
	return propertyOf(propertyOf(spec, replicas)["additionalProperties"].(schema), "template")
}

// replicaTemplate asks for containers that have names and images.
func replicaTemplate() schema {
	container := schema{
		"type": "object", preserve: true, "required": []any{"name", "image"},
		"properties": schema{
			"name":  schema{"type": "string", "minLength": 1, "maxLength": 63},
			"image": schema{"type": "string", "minLength": 1},
		},
	}
	return schema{
		"type": "object", preserve: true, "required": []any{"spec"},
		"properties": schema{"spec": schema{
			"type": "object", preserve: true, "required": []any{"containers"},
			"properties": schema{"containers": schema{
				"type": "array", "items": container, "minItems": 1, "maxItems": kubeflowv1.MaxContainers,
			}},
		}},
	}
}

// schema is the schema of an object, or a part of the CRD.
type schema = map[string]any

// podTemplate asks for named containers and for quantities that can be read.
func podTemplate() schema {
	container := open(reflect.TypeFor[corev1.Container](), schema{
		"name":      schema{"type": "string", "minLength": 1},
		"resources": resources(reflect.TypeFor[corev1.ResourceRequirements]()),
	}, "name")
	// A list has no bound: no rule walks it.
	containers := schema{"type": "array", "items": container}
	atLeastOne := schema{"type": "array", "items": container, "minItems": 1}
	return open(reflect.TypeFor[corev1.PodTemplateSpec](), schema{
		"metadata": open(reflect.TypeFor[metav1.ObjectMeta](), nil),
		"spec": open(reflect.TypeFor[corev1.PodSpec](), schema{
			"containers":     atLeastOne,
			"initContainers": containers,
			"overhead":       quantities(),
			"resources":      resources(reflect.TypeFor[corev1.ResourceRequirements]()),
		}, "containers"),
	}, "spec")
}

// claim asks for quantities that can be read.
func claim() schema {
	return open(reflect.TypeFor[corev1.PersistentVolumeClaimSpec](), schema{
		"resources": resources(reflect.TypeFor[corev1.VolumeResourceRequirements]()),
	})
}

func resources(of reflect.Type) schema {
	return open(of, schema{"limits": quantities(), "requests": quantities()})
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
func open(of reflect.Type, known schema, required ...string) schema {
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
			panic(fmt.Sprintf("%v has no field %s", of, name))
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

func propertyOf(object schema, name string) schema {
	return object["properties"].(schema)[name].(schema)
}

func merge(into, from schema) {
	for key, value := range from {
		into[key] = value
	}
}
