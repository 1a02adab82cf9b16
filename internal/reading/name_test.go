// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
	"strings"
	"testing"
)

func TestANameMayHaveItsKindOrItsNamespaceBeforeIt(t *testing.T) {
	all := len(JobKinds())
	for text, want := range map[string]struct {
		namespace          string
		frameworks, groups bool
		jobs               int
		resource           string
	}{
		"train":                      {"here", true, true, all, ""},
		"there/train":                {"there", true, true, all, ""},
		"framework/train":            {"here", true, false, 0, ""},
		"PodGroup/train":             {"here", false, true, 0, ""},
		"TFJob/train":                {"here", false, false, 1, "tfjobs"},
		"pytorchjobs/train":          {"here", false, false, 1, "pytorchjobs"},
		"mpijobs.kubeflow.org/train": {"here", false, false, 1, "mpijobs"},
		// As -o name has it.
		"framework.frameworkcontroller.microsoft.com/train":  {"here", true, false, 0, ""},
		"frameworks.frameworkcontroller.microsoft.com/train": {"here", true, false, 0, ""},
		"podgroup.scheduling.lockstep.dev/train":             {"here", false, true, 0, ""},
		"pytorchjob.kubeflow.org/train":                      {"here", false, false, 1, "pytorchjobs"},
		"jobs.batch.volcano.sh/train":                        {"here", false, false, 1, "jobs"},
		"vcjob/train":                                        {"here", false, false, 1, "jobs"},
		"job.batch.volcano.sh/train":                         {"here", false, false, 1, "jobs"},
		// That of Kubernetes is not shown here, so it is a namespace.
		"jobs/train": {"jobs", true, true, all, ""},
	} {
		got, err := ParseName("here", text)
		if err != nil || got.Namespace != want.namespace || got.Name != "train" || got.kinds.frameworks != want.frameworks || got.kinds.groups != want.groups || len(got.kinds.jobs) != want.jobs {
			t.Errorf("%s is %+v, %v", text, got, err)
			continue
		}
		if want.resource != "" && got.kinds.jobs[0].Resource.Resource != want.resource {
			t.Errorf("%s is of %s", text, got.kinds.jobs[0].Resource)
		}
	}
}

func TestWhatIsNoNameIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "NAME, KIND/NAME or NAMESPACE/NAME",
		"framework/":            "NAME, KIND/NAME or NAMESPACE/NAME",
		"/train":                "NAME, KIND/NAME or NAMESPACE/NAME",
		"there/framework/train": "NAME, KIND/NAME or NAMESPACE/NAME",
		"deployment.apps/train": "kinds are framework, podgroup, job.batch.volcano.sh, tfjob",
		"job.batch/train":       "kinds are framework",
	} {
		if got, err := ParseName("here", text); !errors.Is(err, ErrName) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

// parsed is a name that is one.
func parsed(t *testing.T, namespace, text string) Name {
	t.Helper()
	n, err := ParseName(namespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
