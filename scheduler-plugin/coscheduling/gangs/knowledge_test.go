// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

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

// TestAMemberThatHasJustEndedIsInAnswers, as one that has succeeded: the gang counts it until it is known how it has ended.
func TestAMemberThatHasJustEndedIsInAnswers(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	for _, name := range []string{"a", "b"} {
		b.add(makePod(name, inGroup("gang"), onNode("n")))
	}
	gone := makePod("a", inGroup("gang"), onNode("n"))
	b.SetMissing(gone)
	all, _ := b.All()
	phases := make(map[string]corev1.PodPhase)
	for _, pod := range all[0].Members {
		phases[pod.Name] = pod.Status.Phase
	}
	if len(phases) != 2 || phases["a"] != corev1.PodSucceeded || phases["b"] == corev1.PodSucceeded {
		t.Errorf("the members are %v", phases)
	}
	if gone.Status.Phase == corev1.PodSucceeded {
		t.Error("the question has changed the Pod")
	}
}

// TestAQuestionKeepsTheSchedulerFromItsGangsForLessThan50Milliseconds, with 10,000 Pods: while All copies, no turn
// can change what is known. The shortest of some tries counts, since other programs take time, too.
func TestAQuestionKeepsTheSchedulerFromItsGangsForLessThan50Milliseconds(t *testing.T) {
	all := tenThousandPods()
	shortest := time.Hour
	for range 10 {
		start := time.Now()
		if known, leads := all.All(); !leads || len(known) != 1000 {
			t.Fatal(leads, len(known))
		}
		shortest = min(shortest, time.Since(start))
	}
	if shortest > 50*time.Millisecond {
		t.Errorf("it took %s", shortest)
	}
}

// BenchmarkAll is for how long a question may keep the scheduler from its gangs, with 10,000 Pods.
func BenchmarkAll(b *testing.B) {
	all := tenThousandPods()
	for b.Loop() {
		if known, leads := all.All(); !leads || len(known) != 1000 {
			b.Fatal(leads, len(known))
		}
	}
}

// tenThousandPods are in 1000 gangs.
func tenThousandPods() *bench {
	all := newBench()
	for g := range 1000 {
		key := gangNamed(fmt.Sprint("gang-", g))
		all.Gangs.SetGroup(&dialect.Group{Key: key, UID: types.UID(key.Name), Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: 10}}})
		for i := range 10 {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name, pod.UID = key.Namespace, fmt.Sprintf("%s-%d", key.Name, i), types.UID(fmt.Sprintf("%s-%d", key.Name, i))
			pod.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: key.Name}
			all.SetPod(pod)
		}
	}
	return all
}
