// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// TestWhatIsWrittenToAPodThatWaits is one patch, of just what changes, and says of which Pod
// it is.
func TestWhatIsWrittenToAPodThatWaits(t *testing.T) {
	type patch struct {
		Metadata struct{ UID types.UID }
		Status   struct {
			Conditions        []struct{ Reason string }
			NominatedNodeName *string
		}
	}
	unschedulable := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	tests := map[string]struct {
		before    string // nominated
		condition *corev1.PodCondition
		node      string
		// wantNode is nil if the nomination is not written.
		wantReasons []string
		wantNode    *string
		wantWrites  int
	}{
		"why, and for which node":  {condition: unschedulable, node: "a", wantReasons: []string{"Unschedulable"}, wantNode: new("a"), wantWrites: 1},
		"why alone":                {before: "a", condition: unschedulable, node: "a", wantReasons: []string{"Unschedulable"}, wantWrites: 1},
		"for which node alone":     {before: "a", node: "b", wantNode: new("b"), wantWrites: 1},
		"that there is none":       {before: "a", wantNode: new(""), wantWrites: 1},
		"nothing, if nothing does": {before: "a", node: "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, makePod("pod", 0, ""))
			pod := w.pod("pod")
			pod.Status.NominatedNodeName = tc.before
			var written []patch
			w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				var p patch
				data := action.(clienttesting.PatchAction).GetPatch()
				if err := json.Unmarshal(data, &p); err != nil {
					t.Error(err)
				}
				var raw struct{ Status map[string]any }
				if err := json.Unmarshal(data, &raw); err != nil {
					t.Error(err)
				}
				if node, ok := raw.Status["nominatedNodeName"]; ok && node == nil {
					p.Status.NominatedNodeName = new("")
				}
				written = append(written, p)
				return true, pod, nil
			})
			if err := WriteWait(w.ctx, w.client, pod, tc.condition, tc.node); err != nil {
				t.Fatal(err)
			}
			if len(written) != tc.wantWrites {
				t.Fatalf("there were %d writes, want %d", len(written), tc.wantWrites)
			}
			if tc.wantWrites == 0 {
				return
			}
			var reasons []string
			for _, c := range written[0].Status.Conditions {
				reasons = append(reasons, c.Reason)
			}
			if diff := cmp.Diff(tc.wantReasons, reasons); diff != "" {
				t.Errorf("reasons (-want, +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantNode, written[0].Status.NominatedNodeName); diff != "" {
				t.Errorf("nomination (-want, +got):\n%s", diff)
			}
			if uid := written[0].Metadata.UID; uid != pod.UID {
				t.Errorf("the patch is of %q, want %q", uid, pod.UID)
			}
		})
	}
}

// TestAnotherPodOfTheNameIsToldNothing: the API server refuses the patch as it names the UID.
func TestAnotherPodOfTheNameIsToldNothing(t *testing.T) {
	w := newWorld(t, makePod("pod", 0, ""))
	pod := w.pod("pod")
	pod.UID = "was-before"
	w.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(podResource.GroupResource(), "pod", nil)
	})
	if err := WriteWait(w.ctx, w.client, pod, nil, "a"); !apierrors.IsNotFound(err) {
		t.Errorf("the error is %v, want that the Pod is not found", err)
	}
}
