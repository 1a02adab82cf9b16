// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"path/filepath"
	"testing"

	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

// TestCRDsAreAccepted holds the generated CRDs against the checks that the API
// server makes before it takes them, among them the cost limits of CEL rules.
func TestCRDsAreAccepted(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../manifests/crds/*_*.yaml", "../manifests/volcano/*_*.yaml", "../manifests/kubeflow/*_*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) != 10 {
		t.Fatalf("CRD files: got %v, want those of Framework, PodGroup, Job, Command, and of the six kinds of Kubeflow's jobs", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), crd.Read(t, file)); len(errs) > 0 {
				t.Errorf("the API server would refuse it: %v", errs.ToAggregate())
			}
		})
	}
}
