// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// role is how the training job appears in the demo.
type role struct {
	name      string
	fails     bool // its last worker, once, in attempt 0
	simulated bool // no container runs; annotations say how Pods end
	// image is the name of the workers' image in a cluster of somebody else's. There they also take a
	// seat each, of which there are as many as there is to be room for. Empty in a local cluster.
	image string
}

// How long simulated Pods run before they end.
const simulatedSeconds = "4"

// cast turns the manifest of the training job into that of one of its
// appearances.
func cast(manifest []byte, r role) (string, error) {
	job, err := localenv.EditManifest(manifest, func(object *unstructured.Unstructured) error {
		object.SetName(r.name)
		switch object.GetKind() {
		case "Framework":
			return castFramework(object, r)
		case "Service":
			return unstructured.SetNestedField(object.Object, r.name, "spec", "selector", "FC_FRAMEWORK_NAME")
		}
		return nil
	})
	if err == nil && job == "" {
		err = errors.New("holds no objects")
	}
	return job, err
}

func castFramework(fw *unstructured.Unstructured, r role) error {
	roles, _, err := unstructured.NestedSlice(fw.Object, "spec", "taskRoles")
	if err != nil || len(roles) == 0 {
		return fmt.Errorf("spec.taskRoles: want a list of roles (%v)", err)
	}
	taskRole := roles[0].(map[string]any)
	if r.simulated {
		err = castSimulated(taskRole, r)
	} else {
		err = castContainer(taskRole, r)
	}
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(fw.Object, roles, "spec", "taskRoles")
}

// castSimulated says by annotations how the Pods of a role end.
func castSimulated(taskRole map[string]any, r role) error {
	annotations := map[string]string{jobs.AnnotationRunSeconds: simulatedSeconds, jobs.AnnotationExitCode: "0"}
	if r.fails {
		annotations[jobs.AnnotationExitCode] = "200"
		annotations[jobs.AnnotationFailAttempts] = "1"
	}
	return unstructured.SetNestedStringMap(taskRole, annotations, "task", "pod", "metadata", "annotations")
}

// castContainer says what the container of a role runs.
func castContainer(taskRole map[string]any, r role) error {
	containers, _, err := unstructured.NestedSlice(taskRole, "task", "pod", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return fmt.Errorf("the pod template has no containers (%v)", err)
	}
	container := containers[0].(map[string]any)
	if r.fails {
		arguments, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedStringSlice(container, append(arguments, "-fail-at-step=300"), "args"); err != nil {
			return err
		}
	}
	if r.image != "" {
		container["image"], container["imagePullPolicy"] = r.image, "IfNotPresent"
		if err := unstructured.SetNestedField(container, "1", "resources", "limits", seat); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(taskRole, containers, "task", "pod", "spec", "containers")
}
