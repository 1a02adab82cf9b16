// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
)

func TestFirstStatusHasExplicitNulls(t *testing.T) {
	f := framework(role("w", 1))
	w := newWorld(t, f)
	data, err := statuscodec.Encode(Decide(Snapshot{Framework: f, Options: w.options}, w.now, w).Status, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"runTime":null`, `"completionTime":null`, `"retryDelaySec":null`, `"configMapUID":null`, `"instanceUID":null`,
		`"completionStatus":null`, `"podUID":null`, `"podIP":null`, `"deletionPending":false`, `"totalRetriedCount":0`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the first status has no %s", want)
		}
	}
}
