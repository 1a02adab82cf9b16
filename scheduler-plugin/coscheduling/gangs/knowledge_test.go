// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import "testing"

func TestNobodyIsAnsweredBeforeAllIsSeen(t *testing.T) {
	b := newBlindBench()
	if _, leads := b.All(); leads {
		t.Error("a scheduler that does not know what there was before gives answers")
	}
	b.SetSynced()
	if all, leads := b.All(); !leads || len(all) != 0 {
		t.Errorf("%t, %v", leads, all)
	}
}
