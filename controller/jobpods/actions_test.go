// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
)

// TestAnAnnotationTakesNoOthersPlace, whatever somebody has set since the Pod was seen.
func TestAnAnnotationTakesNoOthersPlace(t *testing.T) {
	tests := map[string]struct {
		seen, stored, want map[string]string
		fails              bool
	}{
		"the first one":                  {want: map[string]string{"a/b": "c"}},
		"one more":                       {seen: map[string]string{"x": "y"}, stored: map[string]string{"x": "y"}, want: map[string]string{"x": "y", "a/b": "c"}},
		"the first one, set by two":      {stored: map[string]string{"x": "y"}, fails: true},
		"one more, beside another's one": {seen: map[string]string{"x": "y"}, stored: map[string]string{"x": "y", "z": "z"}, want: map[string]string{"x": "y", "z": "z", "a/b": "c"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			seen, stored := &corev1.Pod{}, &corev1.Pod{}
			seen.Annotations, stored.Annotations = tc.seen, tc.stored
			encoded, err := json.Marshal(Annotate(seen, "a/b", "c"))
			if err != nil {
				t.Fatal(err)
			}
			patch, err := jsonpatch.DecodePatch(encoded)
			if err != nil {
				t.Fatal(err)
			}
			before, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			after, err := patch.Apply(before)
			if fails := err != nil; fails != tc.fails {
				t.Fatalf("the patch fails with %v", err)
			}
			if tc.fails {
				return
			}
			got := &corev1.Pod{}
			if err := json.Unmarshal(after, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
