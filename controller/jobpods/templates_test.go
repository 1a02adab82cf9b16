// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"strings"
	"testing"
)

func TestATemplateThatWouldTakeTooMuchIsRefused(t *testing.T) {
	const pod = `{"spec":{"containers":[{"name":"c","args":[%]}]}}`
	tests := map[string]struct {
		args string
		want string
	}{
		"a large one":            {`"` + strings.Repeat("x", 1_000_000) + `"`, ""},
		"one of too many bytes":  {`"` + strings.Repeat("x", 1<<20) + `"`, "must have at most 1048576 bytes, has 1048626"},
		"one of too many values": {strings.Repeat(`"",`, 20_000) + `""`, "must have at most 20000 JSON values, has 20006"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			problem := ""
			if _, err := DecodeTemplate([]byte(strings.Replace(pod, "%", tc.args, 1))); err != nil {
				problem = err.Error()
			}
			if problem != tc.want {
				t.Errorf("got %q, want %q", problem, tc.want)
			}
		})
	}
}
