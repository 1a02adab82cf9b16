// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// maintained is a node whose annotation has a text.
func maintained(text string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{schedulingv1alpha1.AnnotationMaintenanceFrom: text}}}
}

func TestFromWhenOnANodeIsMaintained(t *testing.T) {
	for text, want := range map[string]struct {
		at    time.Time
		fails bool
	}{
		"2026-11-29T12:00:00Z":      {at: noon},
		"2026-11-29T14:00:00+02:00": {at: noon},
		"tomorrow":                  {fails: true},
		"2026-11-29":                {fails: true},
	} {
		if at, err := From(maintained(text)); !at.Equal(want.at) || (err != nil) != want.fails {
			t.Errorf("%q is %v, %v", text, at, err)
		}
	}
	if at, err := From(&corev1.Node{}); !at.IsZero() || err != nil {
		t.Errorf("without the annotation it is %v, %v", at, err)
	}
}

func TestWhichWorkMayStartBeforeMaintenance(t *testing.T) {
	var w Windows
	w.Set("a", noon)
	w.Set("b", noon.Add(time.Hour))
	w.Set("c", noon)
	w.Set("c", time.Time{})
	for name, test := range map[string]struct {
		ends   time.Time
		closed int
		last   time.Time
	}{
		"what ends before":                    {ends: noon, closed: 0},
		"what runs past the first":            {ends: noon.Add(time.Minute), closed: 1, last: noon},
		"what runs past both":                 {ends: noon.Add(2 * time.Hour), closed: 2, last: noon.Add(time.Hour)},
		"what runs for nobody knows how long": {closed: 2, last: noon.Add(time.Hour)},
	} {
		a, c := maintained(noon.Format(time.RFC3339)), &corev1.Node{}
		if got, last := w.Closed(test.ends); got != test.closed || !last.Equal(test.last) || Closes(a, test.ends) != (test.closed > 0) || Closes(c, test.ends) {
			t.Errorf("%s: %d nodes are closed, want %d; the last at %v", name, got, test.closed, last)
		}
	}
}

// TestTheNodeAloneSaysWhetherWorkMayStart in the words of its annotation, also before Windows have heard of a change.
func TestTheNodeAloneSaysWhetherWorkMayStart(t *testing.T) {
	for name, test := range map[string]struct {
		node   *corev1.Node
		ends   time.Time
		closes bool
	}{
		"what ends before":                    {maintained("2026-11-29T12:00:00Z"), noon, false},
		"what runs past the beginning":        {maintained("2026-11-29T12:00:00Z"), noon.Add(time.Minute), true},
		"what runs for nobody knows how long": {maintained("2026-11-29T12:00:00Z"), time.Time{}, true},
		"a text that is no time":              {maintained("tomorrow"), time.Time{}, false},
		"a node without maintenance":          {&corev1.Node{}, time.Time{}, false},
	} {
		if closes := Closes(test.node, test.ends); closes != test.closes {
			t.Errorf("%s: %v", name, closes)
		}
	}
}
