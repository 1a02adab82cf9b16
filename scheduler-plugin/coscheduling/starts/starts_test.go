// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// TestAGroupIsToldWhatIsNews: it waits since noon, was told at one o'clock, and is asked about in the minutes after.
func TestAGroupIsToldWhatIsNews(t *testing.T) {
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	last := reported{whatif.Expected{Latest: at(10), Probable: at(5)}, at(1)}
	for name, test := range map[string]struct {
		now   whatif.Expected
		after time.Duration
		want  bool
	}{
		"the same":                                  {now: last.Expected, after: time.Hour},
		"less than a tenth of the wait later":       {now: whatif.Expected{Latest: at(10.9), Probable: at(5)}, after: time.Hour},
		"more than a tenth of the wait later":       {now: whatif.Expected{Latest: at(11.5), Probable: at(5)}, after: time.Hour, want: true},
		"a probable start that is that much sooner": {now: whatif.Expected{Latest: at(10), Probable: at(4)}, after: time.Hour, want: true},
		"that much within a minute":                 {now: whatif.Expected{Latest: at(10), Probable: at(4)}, after: 59 * time.Second},
		"a start that is unknown by now":            {now: whatif.Expected{Probable: at(5)}, after: time.Hour, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := last.isNews(&test.now, noon, at(1).Add(test.after)); got != test.want {
				t.Errorf("it is told: %t, want %t", got, test.want)
			}
		})
	}
}

// TestWhatIsLearnedFromGangsThatRunNoMore: five gangs were to run for ten hours, and run for six minutes.
func TestWhatIsLearnedFromGangsThatRunNoMore(t *testing.T) {
	group := &dialect.Group{Key: dialect.Key{Namespace: "team", Name: "train-1"}, UID: "group",
		Spec: dialect.Spec{Runtime: dialect.Runtime{Expected: 10 * time.Hour}}}
	ended, preempted := corev1.PodStatus{Phase: corev1.PodSucceeded}, corev1.PodStatus{Phase: corev1.PodFailed,
		Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}}
	for name, test := range map[string]struct {
		groups []*dialect.Group
		then   []corev1.PodStatus // of the gang's only Pod, none if the Pod is gone
		want   time.Duration
	}{
		"their Pods have ended":        {groups: []*dialect.Group{group}, then: []corev1.PodStatus{ended}, want: 6 * time.Minute},
		"all of them are gone":         {want: 6 * time.Minute},
		"their Pods were preempted":    {groups: []*dialect.Group{group}, then: []corev1.PodStatus{preempted}, want: 10 * time.Hour},
		"their Pods have to be remade": {groups: []*dialect.Group{group}, want: 10 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(status corev1.PodStatus) *corev1.Pod {
				return &corev1.Pod{Status: status, ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train-1-0", UID: "pod",
					Labels: map[string]string{schedulingv1alpha1.LabelPodGroup: "train-1"}}}
			}
			var h history
			for i := range minShares {
				began := noon.Add(time.Duration(i) * time.Hour)
				runs := pod(corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(began))})
				h.look(&whatif.Snapshot{Now: began.Add(6 * time.Minute), Groups: []*dialect.Group{group}, Pods: []*corev1.Pod{runs}, Links: &dialect.Links{}})
				var then []*corev1.Pod
				for _, status := range test.then {
					then = append(then, pod(status))
				}
				h.look(&whatif.Snapshot{Now: began.Add(7 * time.Minute), Groups: test.groups, Pods: then, Links: &dialect.Links{}})
			}
			if got := h.runs(group, 0, 0.5); got != test.want {
				t.Errorf("the next gang is expected to run for %v, want %v", got, test.want)
			}
		})
	}
}

func TestEstimatesAreCorrectedByWhatGangsHaveUsed(t *testing.T) {
	l := newLearned()
	key := func(name string) dialect.Key { return dialect.Key{Namespace: "team", Name: name} }
	if got := l.expected(key("train-9"), 10*time.Hour, 0, 0.5); got != 10*time.Hour {
		t.Errorf("without history a gang runs for %s", got)
	}
	for i := range 10 {
		// Of ten hours these run for one to ten.
		l.ended(key(fmt.Sprintf("train-%d", i)), 10*time.Hour, time.Duration(i+1)*time.Hour)
	}
	for _, test := range []struct{ ran, want time.Duration }{{0, 6 * time.Hour}, {6 * time.Hour, 9 * time.Hour}, {10 * time.Hour, 10 * time.Hour}} {
		if got := l.expected(key("train-99"), 10*time.Hour, test.ran, 0.5); got != test.want {
			t.Errorf("after %s a gang is expected to run for %s, want %s", test.ran, got, test.want)
		}
	}
	for range 10 {
		l.ended(key("short"), 10*time.Hour, time.Hour)
	}
	if got := l.expected(key("short"), 10*time.Hour, 0, 0.5); got != time.Hour {
		t.Errorf("a gang whose name tells is expected to run for %s, want 1h", got)
	}
	if got := l.expected(key("train-1"), 10*time.Hour, 0, 0.5); got != 6*time.Hour {
		t.Errorf("gangs of other names count: %s", got)
	}
}
