// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheAuditLogIsRead(t *testing.T) {
	const whole = `{"kind":"Event","verb":"update","user":{"username":"u"},"requestURI":"/apis/g/v1/x?y","objectRef":{"apiGroup":"g","resource":"jobs","namespace":"n","name":"j","subresource":"status"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}` + "\n"
	want := []Request{{User: "u", Verb: "update", Group: "g", Resource: "jobs/status", Namespace: "n", Name: "j", Path: "/apis/g/v1/x", Code: 403, Denied: true}}
	for name, tc := range map[string]struct {
		log, wantError string
		want           []Request
	}{
		"a line":                       {log: whole, want: want},
		"a line that is being written": {log: whole + `{"kind":`, want: want},
		"a line that makes no sense":   {log: "{\n" + whole, wantError: "reading the audit log"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readAudit(bufio.NewScanner(strings.NewReader(tc.log)))
			if (err == nil) != (tc.wantError == "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("error %v, want %q", err, tc.wantError)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("requests (-want,+got):\n%s", diff)
			}
		})
	}
}
