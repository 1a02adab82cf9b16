// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// nominate has the Pods of the gang be nominated for nodes from now on, by name.
func (r *reporting) nominate(nodes map[string]string) {
	r.mu.Lock()
	for i := range r.gang.Pods {
		r.gang.Pods[i].Nominee = nodes[r.gang.Pods[i].Pod.Name]
	}
	r.mu.Unlock()
	r.Report(r.gang.Key, 0)
}

// see has the gang know its Pods as they are now.
func (r *reporting) see() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.gang.Pods {
		object, err := r.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ns", r.gang.Pods[i].Pod.Name)
		if err == nil {
			r.gang.Pods[i].Pod = object.(*corev1.Pod)
		}
	}
}

// nominations are for which nodes the Pods are nominated, by name.
func (r *reporting) nominations() map[string]string {
	r.see()
	nodes := make(map[string]string)
	for _, p := range r.gang.Pods {
		nodes[p.Pod.Name] = p.Pod.Status.NominatedNodeName
	}
	return nodes
}

// TestRoomThatComesAndGoesIsWrittenNowAndThen: every second the room of a gang is another one,
// or none.
func TestRoomThatComesAndGoesIsWrittenNowAndThen(t *testing.T) {
	report(t, gangOf(complete, refused), nil, func(t *testing.T, r *reporting) {
		r.rest(time.Second)
		before := r.patches()
		nodes := []map[string]string{{"a": "one", "b": "two"}, {}, {"a": "two", "b": "one"}, {}}
		for second := range 60 {
			r.nominate(nodes[second%len(nodes)])
			r.rest(time.Second)
			r.see()
		}
		// Two Pods, six times ten seconds, and two writes in each; one more as they begin.
		if n := r.patches() - before; n > 2*(6*2+1) {
			t.Errorf("nominations were written %d times in a minute", n)
		}
		r.nominate(nil)
		r.rest(10 * time.Second)
		if diff := cmp.Diff(map[string]string{"a": "", "b": ""}, r.nominations()); diff != "" {
			t.Errorf("nominations in the end (-want, +got):\n%s", diff)
		}
	}, "a", "b")
}
