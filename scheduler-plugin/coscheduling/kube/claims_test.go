// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"
)

// listless is a profile that counts how often all claims of the cluster are listed.
type listless struct {
	framework.Framework
	lists *int
}

func (p listless) SharedDRAManager() fwk.SharedDRAManager {
	return listlessManager{p.Framework.SharedDRAManager(), p.lists}
}

type listlessManager struct {
	fwk.SharedDRAManager
	lists *int
}

func (m listlessManager) ResourceClaims() fwk.ResourceClaimTracker {
	return listlessClaims{m.SharedDRAManager.ResourceClaims(), m.lists}
}

type listlessClaims struct {
	fwk.ResourceClaimTracker
	lists *int
}

func (c listlessClaims) List() ([]*resourcev1.ResourceClaim, error) {
	*c.lists++
	return c.ResourceClaimTracker.List()
}

// madeClaim is a claim that a scheduler has made for what a Pod requests of extended resources.
func madeClaim(name string, pod types.UID) *resourcev1.ResourceClaim {
	claim := schedulertesting.MakeResourceClaim().Namespace(testNamespace).Name(name).UID("uid-of-claim-" + name).Obj()
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "pod", UID: pod, Controller: ptr.To(true)}}
	return claim
}

// TestLeftoversAreFoundWithoutAList: a gang that waits is looked at after each turn, and there may
// be tens of thousands of claims that are none of its business.
func TestLeftoversAreFoundWithoutAList(t *testing.T) {
	going := madeClaim("going", "uid-wants")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{}, []string{"test/stays"}
	unmarked := madeClaim("unmarked", "uid-wants")
	unmarked.Annotations = nil
	elsewhere := madeClaim("elsewhere", "uid-wants")
	elsewhere.Namespace = "other"
	objects := []runtime.Object{madeClaim("left-0", "uid-wants"), madeClaim("left-1", "uid-wants"), going, unmarked, elsewhere}
	for n := range 20 {
		objects = append(objects, madeClaim(fmt.Sprintf("other-%d", n), types.UID(fmt.Sprintf("uid-other-%d", n))))
	}
	w := newWorld(t, objects...)
	wants := makePod("wants", 0, "")
	wants.Spec.Containers[0].Resources.Requests["example.com/gpu"] = wants.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	lists := 0
	leftovers, err := Leftovers(w.inside, listless{w.profile(), &lists}, []*corev1.Pod{makePod("plain", 0, ""), wants})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, claim := range leftovers {
		names = append(names, claim.Name)
	}
	if diff := cmp.Diff([]string{"left-0", "left-1"}, names); diff != "" {
		t.Errorf("leftovers (-want, +got):\n%s", diff)
	}
	if lists > 0 {
		t.Errorf("all claims of the cluster are listed %d times", lists)
	}
}
