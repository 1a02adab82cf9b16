// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestMaskEnvMasks(t *testing.T) {
	tests := map[string]struct {
		maskEnv MaskEnv
		masked  []string
		shown   []string
	}{
		"by default what looks like a secret": {
			masked: []string{"DB_PASSWORD", "ClientSecret", "hf_token", "AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS"},
			shown:  []string{"PATH", "FC_FRAMEWORK_NAME", "", "pass word"},
		},
		"names that are configured take the place of the default": {
			maskEnv: MaskEnv{NameFragments: []string{"Dsn", "pin"}},
			masked:  []string{"SENTRY_DSN", "PIN", "shopping"},
			shown:   []string{"DB_PASSWORD"},
		},
		"all": {
			maskEnv: MaskEnv{Policy: ptr.To(MaskEnvAll)},
			masked:  []string{"PATH", "DB_PASSWORD", ""},
		},
		"none": {
			maskEnv: MaskEnv{Policy: ptr.To(MaskEnvNone)},
			shown:   []string{"PATH", "DB_PASSWORD", ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, variable := range tc.masked {
				if !tc.maskEnv.Masks(variable) {
					t.Errorf("%q is not masked", variable)
				}
			}
			for _, variable := range tc.shown {
				if tc.maskEnv.Masks(variable) {
					t.Errorf("%q is masked", variable)
				}
			}
		})
	}
}
