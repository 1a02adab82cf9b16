// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEditManifest(t *testing.T) {
	rename := func(object *unstructured.Unstructured) error {
		if object.GetKind() == "Refused" {
			return errors.New("not that one")
		}
		object.SetName("new")
		return nil
	}
	for name, tc := range map[string]struct{ manifest, want, wantError string }{
		"all objects are edited, others are left out": {
			manifest: "kind: A\nmetadata: {name: old}\n---\n# nothing\n---\nnoKind: 1\n---\nkind: B\n",
			want:     "---\nkind: A\nmetadata:\n  name: new\n---\nkind: B\nmetadata:\n  name: new\n",
		},
		"nothing is made of nothing": {},
		"an error names the object":  {manifest: "kind: Refused\nmetadata: {name: x}\n", wantError: "Refused x: not that one"},
		"what is no YAML is refused": {manifest: "kind: [", wantError: "reading a manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditManifest([]byte(tc.manifest), rename)
			if got != tc.want || (err == nil) != (tc.wantError == "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got %q, %v; want %q, error %q", got, err, tc.want, tc.wantError)
			}
		})
	}
}
