// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// onePod is a client of one Pod, whose deletion is a conflict.
type onePod struct {
	Client
	uid types.UID
}

func (p onePod) Get(_ context.Context, _, name string) (metav1.Object, error) {
	if p.uid == "" {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: p.uid, ResourceVersion: "7"}}, nil
}

func (p onePod) Delete(_ context.Context, _, name string, _ metav1.DeleteOptions) error {
	return apierrors.NewConflict(corev1.Resource("pods"), name, errors.New("come again"))
}

// TestAConflictIsNoEnd: the UID may be another one, and then the Pod is gone. But a
// webhook may say the same of a Pod that is there.
func TestAConflictIsNoEnd(t *testing.T) {
	action := plan.Action{Verb: plan.Delete, Kind: "Pod", Name: "a", UID: "own"}
	tests := map[string]struct {
		live types.UID
		gone bool
	}{
		"it is there":            {live: "own"},
		"another one is there":   {live: "other", gone: true},
		"there is none any more": {gone: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := deleteOne(t.Context(), target{Kind: &Kind{Client: onePod{uid: tc.live}}}, action, metav1.DeleteOptions{})
			if gone := err == nil; gone != tc.gone {
				t.Errorf("the deletion ends with %v, want that it is gone: %t", err, tc.gone)
			}
		})
	}
}

// TestAnObjectThatHasChangedIsNotDeleted: what it has become is shown to the next decision.
func TestAnObjectThatHasChangedIsNotDeleted(t *testing.T) {
	tests := map[string]struct {
		version       string
		shown, failed bool
	}{
		"it has changed":                     {version: "6", shown: true},
		"it has not, and somebody refuses":   {version: "7", failed: true},
		"any version is to go, and does not": {failed: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			memory := &memory[*corev1.Pod, string]{objects: newObjects()}
			r := result{action: plan.Action{Verb: plan.Delete, Kind: "Pod", Name: "a", UID: "own", Version: tc.version}}
			(&executor[*corev1.Pod, string]{}).run(t.Context(), target{Kind: &Kind{Client: onePod{uid: "own"}, Remembers: true}}, &r)
			if failed := r.err != nil; failed != tc.failed {
				t.Fatalf("the deletion ends with %v", r.err)
			}
			if tc.failed {
				return
			}
			memory.remember(r)
			if shown := memory.ahead[refOf(r.action)] != nil; shown != tc.shown || memory.deleted["own"] || r.outcome != nil {
				t.Errorf("shown: %t, want %t; deleted: %t; outcome %v", shown, tc.shown, memory.deleted["own"], r.outcome)
			}
		})
	}
}
