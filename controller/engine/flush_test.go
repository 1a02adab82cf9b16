// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestASecondKindOfOwnersMakesNoStopLonger: a kubelet waits for so long only, and an API
// server that does not answer takes all of the time that a flush has.
func TestASecondKindOfOwnersMakesNoStopLonger(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk) {
		p := d.start(-1)
		written := map[string]int{}
		d.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if r.Verb != apiserver.Update || r.Subresource != "status" {
				return apiserver.Fault{}
			}
			if written[r.Resource]++; written[r.Resource] > 1 { // The first lets the ConfigMap be made.
				return apiserver.Fault{Before: time.Hour}
			}
			return apiserver.Fault{}
		})
		d.write("a", "one")
		apiserver.Add(d.server, &Draft{Note{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "draft"}, Spec: NoteSpec{Text: "one"}}})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if written["notes"] != 2 || written["drafts"] != 2 {
			t.Fatalf("statuses were written so often: %v, want one write of each kind to hang", written)
		}
		begun := time.Now()
		p.stop()
		d.running.Wait()
		if took := time.Since(begun); took > 2*pacing.FlushTime {
			t.Errorf("the stop took %v, want %v for what is under way, and once that for the rest", took, pacing.FlushTime)
		}
		for _, event := range apiserver.All[corev1.Event](d.server, "ns") {
			t.Errorf("the user is told that the controller was stopped: %s: %s", event.Reason, event.Message)
		}
	})
}
