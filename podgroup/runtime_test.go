// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestTheSmallestLimitOfAJobHoldsAndCutsItsEstimate(t *testing.T) {
	for name, test := range map[string]struct {
		limit, estimate string // Annotations.
		fields          Runtimes
		want, expected  int32 // 0 is unknown.
		problem         string
	}{
		"nothing is known":                {},
		"annotations":                     {limit: "60", estimate: "30", want: 60, expected: 30},
		"fields":                          {fields: Runtimes{ptr.To[int32](60), ptr.To[int32](30)}, want: 60, expected: 30},
		"the smaller limit, in the field": {limit: "60", fields: Runtimes{Max: ptr.To[int32](50)}, want: 50},
		"the smaller limit, annotated":    {limit: "40", fields: Runtimes{Max: ptr.To[int32](50)}, want: 40},
		"the annotated estimate":          {estimate: "70", fields: Runtimes{Expected: ptr.To[int32](50)}, expected: 70},
		"an estimate above the limit":     {limit: "60", estimate: "90", want: 60, expected: 60},
		"ten years":                       {limit: "315360000", want: 315360000},
		"a second more":                   {limit: "315360001", problem: "lockstep.dev/max-runtime-seconds"},
		"zero":                            {limit: "0", problem: "from 1 to 315360000"},
		"a duration":                      {estimate: "1h", problem: "scheduling.lockstep.dev/expected-runtime-seconds"},
		"no number of 32 bits":            {limit: "99999999999999999999", problem: "lockstep.dev/max-runtime-seconds"},
		"an empty annotation":             {limit: " ", problem: "lockstep.dev/max-runtime-seconds"},
		"fields that make no sense":       {fields: Runtimes{ptr.To[int32](0), ptr.To[int32](-1)}},
		"a bad annotation beside a field": {limit: "soon", fields: Runtimes{Max: ptr.To[int32](50)}, want: 50, problem: "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			job := &metav1.ObjectMeta{Annotations: map[string]string{}}
			if test.limit != "" {
				job.Annotations[schedulingv1alpha1.AnnotationMaxRuntime] = test.limit
			}
			if test.estimate != "" {
				job.Annotations[schedulingv1alpha1.AnnotationExpectedRuntime] = test.estimate
			}
			got, problems := ReadRuntimes(job, test.fields)
			if ptr.Deref(got.Max, 0) != test.want || ptr.Deref(got.Expected, 0) != test.expected {
				t.Errorf("limit %d and estimate %d, want %d and %d", ptr.Deref(got.Max, 0), ptr.Deref(got.Expected, 0), test.want, test.expected)
			}
			if told := strings.Join(problems, "; "); (told == "") != (test.problem == "") || !strings.Contains(told, test.problem) {
				t.Errorf("problems %q, want one with %q", told, test.problem)
			}
		})
	}
}
