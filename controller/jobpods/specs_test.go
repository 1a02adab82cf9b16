// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestProblemsAreToldWithinBounds, however many there are and whatever they quote.
func TestProblemsAreToldWithinBounds(t *testing.T) {
	path := field.NewPath("spec")
	var many field.ErrorList
	for i := range 100_000 {
		many = append(many, field.Invalid(path.Index(i), i, "is wrong"))
	}
	tests := map[string]struct {
		errs                  field.ErrorList
		begins, ends, without string
	}{
		"one":              {errs: many[:1], begins: "spec[0]: Invalid value: 0: is wrong", ends: "is wrong"},
		"two":              {errs: many[:2], begins: "[spec[0]: Invalid", ends: "spec[1]: Invalid value: 1: is wrong]"},
		"twice the same":   {errs: field.ErrorList{many[0], many[0]}, begins: "spec[0]: Invalid", ends: "is wrong", without: ", spec"},
		"too many":         {errs: many, begins: "[spec[0]: Invalid", ends: "spec[19]: Invalid value: 19: is wrong] and 99980 more", without: "spec[20]"},
		"one that is huge": {errs: field.ErrorList{field.Invalid(path, strings.Repeat("x", 1<<20), "is wrong")}, begins: "spec: Invalid value: \"xxx", ends: "xxx…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Problems(tc.errs)
			if !strings.HasPrefix(got, tc.begins) || !strings.HasSuffix(got, tc.ends) || len(got) > 20*600 {
				t.Errorf("got %d bytes: %.2000s", len(got), got)
			}
			if tc.without != "" && strings.Contains(got, tc.without) {
				t.Errorf("got %.2000s, want it without %q", got, tc.without)
			}
		})
	}
}

// TestNamesOfHostsAreLabels, because they are in what is made for thousands of Pods.
func TestNamesOfHostsAreLabels(t *testing.T) {
	for name, valid := range map[string]bool{
		"host": true, strings.Repeat("x", 63): true,
		strings.Repeat("x", 64): false, strings.Repeat("x", 500_000): false, "a.b": false, "A": false, "-": false,
	} {
		for _, key := range []string{"hostname", "subdomain"} {
			_, err := DecodeTemplate(fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c"}],%q:%q}}`, key, name))
			if valid && err != nil || !valid && (err == nil || !strings.Contains(err.Error(), "spec."+key) || len(err.Error()) > 500) {
				t.Errorf("%s %.70q: %.600v", key, name, err)
			}
		}
	}
}
