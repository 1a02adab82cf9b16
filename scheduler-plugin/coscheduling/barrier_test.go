// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestAGangThatMayNotBePlannedKeepsNoRoom: a plugin keeps a member back after room was held
// back for the gang.
func TestAGangThatMayNotBePlannedKeepsNoRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		licensed := func(w *schedulertesting.PodWrapper) { w.Annotation("licence", "yes") }
		w := newWorld(t, all(makeNodes("node", 2, 3), bornAt(1, makeGroup("big", 2)), makeMembers("big", 2, plusCores("2"), licensed),
			makePod("job-0", onNode("node-0")), makePod("job-1", onNode("node-1")))...)
		w.others = []fwk.Plugin{licence{}}
		w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
		w.start()
		w.eventually("resources are reserved for the gang", func() bool { return w.waiting()[news.Reserved] == 1 })
		pod, err := w.kube.CoreV1().Pods(testNamespace).Get(t.Context(), "big-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Annotations = nil
		if _, err := w.kube.CoreV1().Pods(testNamespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("nothing is reserved any more", func() bool { return w.waiting()[news.Reserved] == 0 })
		if !w.helpless("big") {
			t.Error("the gang keeps its right to be helped")
		}
	})
}
