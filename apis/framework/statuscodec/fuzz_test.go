// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// FuzzDecompressRoles unfolds anything as compressed task roles: as it is, and
// as what was compressed. What is accepted can be stored and read again.
func FuzzDecompressRoles(f *testing.F) {
	for _, roles := range []string{
		``, `null`, `{}`, `[]`, `[null]`, `[{}]`, `[{"name":"w","taskStatuses":[{}]}]`,
		`[{"name":"w","taskStatuses":[{"index":0,"state":"AttemptRunning","attemptStatus":{"podUID":"1"}}]}]`,
		`[{"name":"w","taskStatuses":[{"index":0,"state":"AttemptDeletionPending","attemptStatus":{}}]}]`,
	} {
		f.Add([]byte(roles))
		f.Add(gzipped(f, []byte(roles)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, compressed := range [][]byte{data, gzipped(t, data)} {
			fuzzed := frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCreationPending}
			fuzzed.AttemptStatus.TaskRoleStatusesCompressed = compressed
			stored, err := json.Marshal(fuzzed)
			if err != nil {
				t.Fatal(err)
			}
			status, err := Decode(stored)
			if err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("%q is not one line", err)
				}
				continue
			}
			stored, err = Encode(status, true)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Decode(stored)
			if err != nil {
				t.Fatalf("what was accepted can't be read again: %v\n%s", err, stored)
			}
			if diff := cmp.Diff(status, again); diff != "" {
				t.Errorf("what was accepted changes when it is stored (-before +after):\n%s", diff)
			}
		}
	})
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return compressed.Bytes()
}
