// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// cutStatus is the status of owners whose CRD is somebody else's, and may lack a field.
type cutStatus struct {
	Known   string `json:"known,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// cutCore has a status of which the API server may keep but a part.
type cutCore struct {
	Core[*metav1.PartialObjectMetadata, cutStatus]
}

func (cutCore) DecodeStatus(stored []byte) (*cutStatus, error) {
	status := &cutStatus{}
	return status, json.Unmarshal(stored, status)
}

func (cutCore) WithOthers(status, _ *cutStatus) *cutStatus { return status }

func (cutCore) Kept(status, stored *cutStatus) *cutStatus {
	if stored.Unknown != "" {
		return status
	}
	return &cutStatus{Known: status.Known}
}

// TestAStatusThatTheAPIServerCutsIsKnownAgain, so that it is not read and written for ever. What
// was dropped stays in the memory.
func TestAStatusThatTheAPIServerCutsIsKnownAgain(t *testing.T) {
	written, sent := &cutStatus{Known: "a", Unknown: "x"}, &cutStatus{Known: "b", Unknown: "y"}
	tests := map[string]struct {
		stored string
		known  bool
		kept   plan.Kept
	}{
		"all of it":                        {stored: `{"known":"a","unknown":"x"}`, known: true, kept: plan.KeptWhole},
		"a part of it":                     {stored: `{"known":"a"}`, known: true, kept: plan.KeptInPart},
		"a part of one that got no answer": {stored: `{"known":"b"}`, known: true, kept: plan.KeptInPart},
		"one of somebody else":             {stored: `{"known":"c"}`},
		"one of another controller":        {stored: `{"known":"a","unknown":"z"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &memory[*metav1.PartialObjectMetadata, cutStatus]{persisted: written, status: written, stored: written, sent: []*cutStatus{sent}}
			if known := m.takeIn(storedStatus{data: []byte(tc.stored)}, cutCore{}); known != tc.known || m.kept != tc.kept {
				t.Errorf("known: %v, kept: %v", known, m.kept)
			}
			if m.persisted.Unknown != "x" || m.status != written {
				t.Errorf("what was dropped is forgotten: %+v", m.persisted)
			}
		})
	}
	cut := &cutStatus{Known: "a"}
	for name, m := range map[string]*memory[*metav1.PartialObjectMetadata, cutStatus]{
		`{"known":"a"}`: {persisted: cut, status: cut, stored: cut},
		"":              {},
	} {
		if !m.takeIn(storedStatus{data: []byte(name)}, cutCore{}) || m.kept != plan.KeptUnknown {
			t.Errorf("a status %s from which nothing can be dropped tells of %v", name, m.kept)
		}
	}
	m := &memory[*metav1.PartialObjectMetadata, cutStatus]{persisted: written, status: written, stored: written}
	for _, stored := range []string{`{"known":"a"}`, `{"known":"a","unknown":"x"}`} {
		m.takeIn(storedStatus{data: []byte(stored)}, cutCore{})
	}
	if m.kept != plan.KeptWhole {
		t.Error("the API server keeps all by now, and is said to drop a part")
	}
}
