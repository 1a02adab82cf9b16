// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestAPodGroupIsNamedAsTheConfigMapWhereALabelHoldsTheName(t *testing.T) {
	for _, framework := range []string{"a", "my-job", strings.Repeat("x", 55)} {
		if got, want := frameworkv1.PodGroupName(framework), frameworkv1.AttemptName(framework); got != want {
			t.Errorf("PodGroupName(%q): got %q, want %q", framework, got, want)
		}
	}
}

// The name is persisted in objects, so it never changes between versions.
func TestThePodGroupOfAFrameworkWithALongNameHasAStableName(t *testing.T) {
	const want = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-attempt-04c2626137"
	if got := frameworkv1.PodGroupName(strings.Repeat("x", 56)); got != want {
		t.Errorf("PodGroupName of 56 times x: got %q, want %q", got, want)
	}
}

func TestEveryLegalFrameworkNameGivesALegalPodGroupNameOfItsOwn(t *testing.T) {
	owner := map[string]string{}
	for length := 1; length <= validation.DNS1123LabelMaxLength; length++ {
		for _, last := range []string{"x", "y"} {
			framework := strings.Repeat("x-", length)[:length-1] + last
			name := frameworkv1.PodGroupName(framework)
			if problems := validation.IsValidLabelValue(name); len(problems) > 0 {
				t.Errorf("PodGroupName(%q) is %q, which is no label value: %v", framework, name, problems)
			}
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("PodGroupName(%q) is %q, which is no name: %v", framework, name, problems)
			}
			if other, taken := owner[name]; taken {
				t.Errorf("Frameworks %q and %q have the same PodGroup %q", other, framework, name)
			}
			owner[name] = framework
		}
	}
}
