// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Images that `make images` packs and that stand in for those of a manifest:
// FrameworkBarrier's for its own, and one with a shell, some tools and a web
// server for all others.
const (
	toolboxImage = "lockstep.dev/toolbox:dev"
	barrierImage = "lockstep.dev/frameworkbarrier:dev"
)

// ReplaceImages replaces every image of the Frameworks in a manifest, so that it
// runs where no registry is. It returns the name of the last of them, empty if
// there is none. What has no kind is left out.
func ReplaceImages(manifest []byte) (replaced, name string, err error) {
	var out strings.Builder
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return out.String(), name, nil
		} else if err != nil {
			return "", "", fmt.Errorf("reading a manifest: %w", err)
		}
		if object.GetKind() == "" {
			continue
		}
		if object.GetKind() == frameworkv1.FrameworkKind {
			name = object.GetName()
			replaceImages(object.Object)
		}
		document, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return "", "", fmt.Errorf("writing a manifest: %w", err)
		}
		out.WriteString("---\n")
		out.Write(document)
	}
}

// replaceImages replaces the images of all containers anywhere below value.
func replaceImages(value any) {
	switch value := value.(type) {
	case map[string]any:
		if image, ok := value["image"].(string); ok {
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
