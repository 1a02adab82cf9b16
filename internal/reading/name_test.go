// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import "testing"

func TestANameMayHaveItsKindOrItsNamespaceBeforeIt(t *testing.T) {
	all := len(FrontEnds())
	for text, want := range map[string]struct {
		namespace          string
		frameworks, groups bool
		frontEnds          int
		resource           string
	}{
		"train":                      {"here", true, true, all, ""},
		"there/train":                {"there", true, true, all, ""},
		"framework/train":            {"here", true, false, 0, ""},
		"PodGroup/train":             {"here", false, true, 0, ""},
		"TFJob/train":                {"here", false, false, 1, "tfjobs"},
		"pytorchjobs/train":          {"here", false, false, 1, "pytorchjobs"},
		"mpijobs.kubeflow.org/train": {"here", false, false, 1, "mpijobs"},
		"vcjob/train":                {"here", false, false, 1, "jobs"},
		"job.batch.volcano.sh/train": {"here", false, false, 1, "jobs"},
		// That of Kubernetes is not shown here, so it is a namespace.
		"jobs/train": {"jobs", true, true, all, ""},
	} {
		got := ParseName("here", text)
		if got.Namespace != want.namespace || got.Name != "train" || got.kinds.frameworks != want.frameworks || got.kinds.groups != want.groups || len(got.kinds.frontEnds) != want.frontEnds {
			t.Errorf("%s is %+v", text, got)
		}
		if want.resource != "" && got.kinds.frontEnds[0].Resource.Resource != want.resource {
			t.Errorf("%s is of %s", text, got.kinds.frontEnds[0].Resource)
		}
	}
}
