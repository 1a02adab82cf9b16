// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobworld

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Patch applies a JSON patch to a copy of an object, as the API server does. Patch returns false if a test operation of
// the patch fails.
func Patch[T metav1.Object](t testing.TB, object T, operations []plan.Operation) (T, bool) {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return object, false
	}
	if err != nil {
		t.Fatalf("patching %s: %v", before, err)
	}
	patched := newLike(object).(T)
	if err := json.Unmarshal(after, patched); err != nil {
		t.Fatal(err)
	}
	return patched, true
}

// newLike returns an empty object of the type of another.
func newLike(object metav1.Object) metav1.Object {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(metav1.Object)
}
