// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"regexp"
	"strings"
	"testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestCleanReason(t *testing.T) {
	tests := map[string]struct {
		text, want string
	}{
		"a legal reason stays":                  {"Not_Enough:Resources,2", "Not_Enough:Resources,2"},
		"a letter stays":                        {"a", "a"},
		"the longest legal reason stays":        {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"one that is too long is cut":           {strings.Repeat("x", 1025), strings.Repeat("x", 1024)},
		"spaces go":                             {"not enough room", "notenoughroom"},
		"what is no letter goes from the front": {" 2_nodes", "nodes"},
		"commas and colons go from the end":     {"because:,:", "because"},
		"a cut leaves no colon at the end":      {strings.Repeat("x", 1023) + ":x", strings.Repeat("x", 1023)},
		"letters of other alphabets go":         {"zu wenig Plätze", "zuwenigPltze"},
		"bytes that are no text go":             {"a\xffb\x00c", "abc"},
		"nothing":                               {"", "Unknown"},
		"nothing legal":                         {"…: 42", "Unknown"},
	}
	legal := regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := schedulingv1alpha1.CleanReason(tc.text)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if !legal.MatchString(got) || len(got) > 1024 {
				t.Errorf("got %q, which is no legal reason", got)
			}
		})
	}
}
