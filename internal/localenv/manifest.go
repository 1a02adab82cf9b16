// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// EditManifest calls `edit` with every object of a manifest, and returns the manifest of the edited objects. Documents
// without a kind are left out; without objects the result is empty.
func EditManifest(manifest []byte, edit func(*unstructured.Unstructured) error) (string, error) {
	var out strings.Builder
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return out.String(), nil
		} else if err != nil {
			return "", fmt.Errorf("reading a manifest: %w", err)
		}
		if object.GetKind() == "" {
			continue
		}
		if err := edit(object); err != nil {
			return "", fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		document, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("writing a manifest: %w", err)
		}
		out.WriteString("---\n")
		out.Write(document)
	}
}
