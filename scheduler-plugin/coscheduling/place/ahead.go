// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// ahead is the room that a gang has to leave alone. Its members are in the snapshot, so that
// plugins and planner see it as taken.
type ahead struct {
	claims   []room.Claim
	snapshot kube.Snapshot
	// pods are the members that are assumed in the snapshot, in order.
	pods []*corev1.Pod
}

// respect puts the members of claims into the snapshot. If it fails, some are there.
func respect(claims []room.Claim, snapshot kube.Snapshot) (*ahead, error) {
	a := &ahead{claims: claims, snapshot: snapshot}
	for _, claim := range claims {
		for _, m := range claim.Members() {
			if _, err := snapshot.Get(m.Pod.Spec.NodeName); err != nil {
				continue // the node is gone
			}
			if err := snapshot.AssumePod(m); err != nil {
				return a, fmt.Errorf("holding room for %s: %w", klog.KObj(m.Pod), err)
			}
			a.pods = append(a.pods, m.Pod)
		}
	}
	return a, nil
}

// leave takes what respect has put there out of the snapshot, in reverse order.
func (a *ahead) leave(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, pod := range slices.Backward(a.pods) {
		if err := a.snapshot.ForgetPod(logger, pod); err != nil {
			// The next update of the snapshot forgets it.
			logger.Error(err, "Forgetting held room in the snapshot failed", "pod", klog.KObj(pod))
		}
	}
}

// message names the gangs for which room is held back, or is empty.
func (a *ahead) message() string {
	if len(a.claims) == 0 {
		return ""
	}
	text := "; room is held back for PodGroup " + a.claims[0].Gang().Rank.Key.String() + ", which is ahead"
	if n := len(a.claims) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}
