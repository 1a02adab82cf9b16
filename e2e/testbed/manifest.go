// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Images that `make images` packs and that stand in for those of a manifest:
// FrameworkBarrier's for its own, and one with a shell, some tools and a web
// server for all others. Those of Lockstep's examples stand for themselves.
const (
	toolboxImage = "lockstep.dev/toolbox:dev"
	barrierImage = "lockstep.dev/frameworkbarrier:dev"

	exampleImages = "lockstep.dev/"
)

// ReplaceImages replaces every image of the Frameworks and the jobs in a manifest, so that it
// runs where no registry is. It returns the name of the last of them, empty if
// there is none. What has no kind is left out.
func ReplaceImages(manifest []byte) (replaced, name string, err error) {
	replaced, err = localenv.EditManifest(manifest, func(object *unstructured.Unstructured) error {
		kind := object.GetKind()
		if kind == frameworkv1.FrameworkKind || kind == batchv1alpha1.JobKind || object.GroupVersionKind().Group == kubeflowv1.GroupName {
			name = object.GetName()
			replaceImages(object.Object)
		}
		return nil
	})
	return replaced, name, err
}

// replaceImages replaces the images of all containers anywhere below value.
func replaceImages(value any) {
	switch value := value.(type) {
	case map[string]any:
		if image, ok := value["image"].(string); ok && !strings.HasPrefix(image, exampleImages) {
			value["image"] = toolboxImage
			if strings.Contains(image, "frameworkbarrier") {
				value["image"] = barrierImage
			}
			value["imagePullPolicy"] = "Never"
		}
		for _, child := range value {
			replaceImages(child)
		}
	case []any:
		for _, child := range value {
			replaceImages(child)
		}
	}
}
