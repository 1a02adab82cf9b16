// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package tombstone_test

import (
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

func TestObjectIsTheLastThatWasSeen(t *testing.T) {
	object := new(int)
	if got := tombstone.Object(object); got != object {
		t.Errorf("of an event: got %v, want the object itself", got)
	}
	if got := tombstone.Object(cache.DeletedFinalStateUnknown{Key: "a/b", Obj: object}); got != object {
		t.Errorf("of a deletion that was missed: got %v, want the object", got)
	}
}
