// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// allocatedClaim is a claim that has the device of a node, as a scheduler leaves it that dies
// before the binding. It is reserved for some Pods.
func allocatedClaim(name, node, device string, pods ...string) *resourcev1.ResourceClaim {
	claim := deviceClaims(name)[0].(*resourcev1.ResourceClaim)
	claim.Finalizers = []string{resourcev1.Finalizer}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: claim.Spec.Devices.Requests[0].Name, Driver: "driver.example", Pool: node, Device: device},
		}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
			Resource: "pods", Name: pod, UID: types.UID("uid-" + pod),
		})
	}
	return claim
}

// claimWrites are the writes of ResourceClaims by whomever, as verb and subresource.
func (w *world) claimWrites() []string {
	var writes []string
	for _, action := range w.kube.Actions() {
		if action.GetResource().Resource != "resourceclaims" || slices.Contains([]string{"list", "watch", "get"}, action.GetVerb()) {
			continue
		}
		writes = append(writes, action.GetVerb()+" "+action.GetSubresource())
	}
	return writes
}

func (w *world) claim(name string) *resourcev1.ResourceClaim {
	w.t.Helper()
	claim, err := w.kube.ResourceV1().ResourceClaims(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return claim
}

// TestATrialWritesNothing: a scheduler died after it had allocated a device for a member, and
// before it bound that. The next one has to try where to make room for the gang. The claim
// stays as it is, and the gang is placed with it.
func TestATrialWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), deviceClass(), devices("node-0", 1), devices("node-1", 1),
			allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), allocatedClaim("gang-1", "node-1", "device-0", "gang-1"),
			makePod("low-0", onNode("node-0"), wholeNode, ofPriority(0)), makePod("low-1", onNode("node-1"), wholeNode, ofPriority(0)),
			makeGroup("gang", 2), makeMembers("gang", 2, withDeviceClaim, ofPriority(10)))...)
		w.lingers = true
		w.start()
		w.eventually("the victims are deleted", func() bool { return len(w.victims()) == 2 })
		if writes := w.claimWrites(); len(writes) > 0 {
			t.Errorf("while the gang is tried there are writes of claims: %v", writes)
		}
		w.finish("low-0", "low-1")
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
		if writes := w.claimWrites(); len(writes) > 0 {
			t.Errorf("claims that are reserved for the members already are written: %v", writes)
		}
	})
}

// TestDevicesOfAnotherNodeKeepNoGangWaiting: a scheduler died after it had allocated devices
// for members, or their bindings failed. Meanwhile the node of the devices has become full.
func TestDevicesOfAnotherNodeKeepNoGangWaiting(t *testing.T) {
	tests := map[string]struct {
		claims []apiruntime.Object
		member podOption
	}{
		"a claim that is reserved for its member": {
			claims: all(allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), deviceClaims("gang-1")), member: withDeviceClaim,
		},
		"a claim that is reserved for nobody": {
			claims: all(allocatedClaim("gang-0", "node-0", "device-0"), deviceClaims("gang-1")), member: withDeviceClaim,
		},
		"all claims": {
			claims: all(allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), allocatedClaim("gang-1", "node-0", "device-1", "gang-1")), member: withDeviceClaim,
		},
		"a claim that all members share": {
			claims: all(allocatedClaim("shared", "node-0", "device-0", "gang-0", "gang-1")), member: withSharedClaim,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2), deviceClass(), devices("node-0", 2), devices("node-1", 2), tc.claims,
					makePod("running", onNode("node-0"), wholeNode), makeGroup("gang", 2), makeMembers("gang", 2, tc.member))...)
				w.start()
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
				for pod, node := range w.nodeOf() {
					if pod != "running" && node != "node-1" {
						t.Errorf("%s is on %s, which is full", pod, node)
					}
				}
			})
		})
	}
}

// TestAMemberThatWaitsHoldsNoDevices: others may have the devices that were allocated for it.
func TestAMemberThatWaitsHoldsNoDevices(t *testing.T) {
	for name, gang := range map[string][]apiruntime.Object{
		"no member runs":                   all(bornAt(1, makeGroup("gang", 1))),
		"another member runs":              all(bornAt(1, makeGroup("gang", 1)), makePod("gang-1", inGroup("gang"), cores("3"))),
		"room is kept for members to come": all(bornAt(1, makeGroup("gang", 1, asking("8"))), makePod("gang-1", inGroup("gang"), cores("3"))),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 8), deviceClass(), devices("node-0", 1), makePod("busy", onNode("node-0"), cores("7")), gang,
					allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), deviceClaims("small-0"))...)
				w.args = keeping("")
				w.start()
				w.eventually("the gang has started", func() bool { return w.placed("gang") == len(gang)-1 })
				// On the node of the device is room for one core.
				w.create(makePod("gang-0", inGroup("gang"), withDeviceClaim, cores("2")))
				for _, object := range all(bornAt(2, makeGroup("small", 1)), makeMembers("small", 1, withDeviceClaim)) {
					w.create(object)
				}
				w.eventually("the gang that fits is placed", func() bool { return w.placed("small") == 1 })
			})
		})
	}
}

// TestTheRestOfAPlacedGangHoldsNoDevices: the gang has its minimum in the same cycle in which the last member has no
// place.
func TestTheRestOfAPlacedGangHoldsNoDevices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 8), deviceClass(), devices("node-0", 1), makePod("busy", onNode("node-0"), cores("7")),
			bornAt(1, makeGroup("gang", 1)), makePod("gang-1", inGroup("gang"), cores("3")),
			allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), makePod("gang-0", inGroup("gang"), withDeviceClaim, cores("2")))...)
		w.args = `{"initialBackoff":"1h","maxBackoff":"1h"}`
		begun := time.Now()
		w.start()
		w.eventually("the device is free", func() bool { return w.claim("gang-0").Status.Allocation == nil })
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the device was free after %v", took)
		}
	})
}

// TestAGangThatIsNotCompleteHoldsNoDevices: it has no cycle in which it could be refused.
func TestAGangThatIsNotCompleteHoldsNoDevices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), deviceClass(), devices("node-0", 1),
			allocatedClaim("broken-0", "node-0", "device-0", "broken-0"), makeGroup("broken", 2), makeMembers("broken", 1, withDeviceClaim),
			deviceClaims("whole-0"), makeGroup("whole", 1), makeMembers("whole", 1, withDeviceClaim))...)
		w.start()
		w.eventually("the gang that is complete is placed", func() bool { return w.placed("whole") == 1 })
	})
}

// TestMembersThatShareADeviceGoToItsNode: each node has a device, and only the last one has room
// for all members.
func TestMembersThatShareADeviceGoToItsNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("small", 2, 2), makeNodes("large", 1, 8), deviceClass(), devices("small-0", 1), devices("small-1", 1), devices("large-0", 1),
			deviceClaims("shared"), makePod("runs", onNode("large-0"), plusCores("4")), makeGroup("gang", 3), makeMembers("gang", 3, withSharedClaim))...)
		w.start()
		w.eventually("all members are placed", func() bool { return w.placed("gang") == 3 })
		if node := w.nodeOf()["gang-0"]; node != "large-0" {
			t.Errorf("they are on %s", node)
		}
	})
}

// TestMembersThatShareADeviceAreBoundAtOnce: the claim has none yet, and each of them is placed as if
// it were the one for which it gets one.
func TestMembersThatShareADeviceAreBoundAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 8), deviceClass(), devices("node-0", 1), deviceClaims("shared"),
			makeGroup("gang", 8), makeMembers("gang", 8, withSharedClaim))...)
		w.start()
		w.eventually("all members are placed", func() bool { return w.placed("gang") == 8 })
		failures, err := testutil.GetCounterMetricValue(w.engine().metrics.BindFailures)
		if err != nil {
			t.Fatal(err)
		}
		if failures > 0 {
			t.Errorf("%v bindings have failed", failures)
		}
	})
}

// TestMembersThatShareADeviceAndHaveOneOfTheirOwnAreBoundAtOnce, whichever of their claims they name
// first. Nobody gets a device that another one has.
func TestMembersThatShareADeviceAndHaveOneOfTheirOwnAreBoundAtOnce(t *testing.T) {
	const n = 6
	shared := corev1.PodResourceClaim{Name: "shared", ResourceClaimName: ptr.To("shared")}
	other := corev1.PodResourceClaim{Name: "other", ResourceClaimName: ptr.To("other")}
	own := func(w *schedulertesting.PodWrapper) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: "own", ResourceClaimName: ptr.To(w.Obj().Name)}
	}
	tests := map[string]struct {
		claims podOption
		others []string
	}{
		"their own first":      {claims: func(w *schedulertesting.PodWrapper) { w.PodResourceClaims(own(w), shared) }},
		"the shared one first": {claims: func(w *schedulertesting.PodWrapper) { w.PodResourceClaims(shared, own(w)) }},
		"their own in between": {claims: func(w *schedulertesting.PodWrapper) { w.PodResourceClaims(shared, own(w), other) }, others: []string{"other"}},
		"some share one more": {claims: func(w *schedulertesting.PodWrapper) {
			if w.Obj().Name < "gang-3" {
				w.PodResourceClaims(shared, own(w))
			} else {
				w.PodResourceClaims(shared, own(w), other)
			}
		}, others: []string{"other"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				claims := append(append([]string{"shared"}, tc.others...), memberNames("gang", n)...)
				w := newWorld(t, all(makeNodes("node", 1, n), deviceClass(), devices("node-0", len(claims)), deviceClaims(claims...),
					makeGroup("gang", n), makeMembers("gang", n, tc.claims))...)
				w.start()
				w.eventually("all members are placed", func() bool { return w.placed("gang") == n })
				failures, err := testutil.GetCounterMetricValue(w.engine().metrics.BindFailures)
				if err != nil {
					t.Fatal(err)
				}
				if failures > 0 {
					t.Errorf("%v bindings have failed", failures)
				}
				takenBy := make(map[string]string)
				for _, name := range claims {
					claim := w.claim(name)
					if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 1 {
						t.Fatalf("claim %s has no device: %v", name, claim.Status)
					}
					device := claim.Status.Allocation.Devices.Results[0].Device
					if other := takenBy[device]; other != "" {
						t.Errorf("claims %s and %s have one device, %s", name, other, device)
					}
					takenBy[device] = name
					if want := map[bool]int{true: 1, false: 2}[strings.HasPrefix(name, "gang")]; len(claim.Status.ReservedFor) < want || want == 1 && len(claim.Status.ReservedFor) != 1 {
						t.Errorf("claim %s is reserved for %d Pods", name, len(claim.Status.ReservedFor))
					}
				}
			})
		})
	}
}

// TestMembersThatCanNotShareADeviceAreTold: kube-scheduler would give a member the device of the
// claim that it shares for what it requests as an extended resource. Nothing is held meanwhile, and
// once the claim has a device they are placed.
func TestMembersThatCanNotShareADeviceAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		class := deviceClass().(*resourcev1.DeviceClass)
		class.Spec.ExtendedResourceName = ptr.To(string(gpu))
		w := newWorld(t, all(makeNodes("node", 1, 4), class, devices("node-0", 3), deviceClaims("shared"), makeGroup("gang", 2),
			makeMembers("gang", 2, withSharedClaim, func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{gpu: "1"}) }))...)
		w.start()
		told := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "members that request " + string(gpu) + " can't share the ResourceClaim shared before it has a device"; !strings.Contains(told.Message, want) {
			t.Errorf("it is told %q, want %q in it", told.Message, want)
		}
		if got := w.allocated(); len(got) > 0 || w.placed("gang") > 0 {
			t.Errorf("%d members are placed, and %v have devices", w.placed("gang"), got)
		}
		claim := w.claim("shared")
		claim.Status = allocatedClaim("shared", "node-0", "device-0", "other").Status
		if _, err := w.kube.ResourceV1().ResourceClaims(testNamespace).UpdateStatus(w.t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("they are placed", func() bool { return w.placed("gang") == 2 })
	})
}

// TestAClaimThatMovesTakesItsMemberAlong: the claim has a device of node-0 when the member is
// placed. Before it is reserved for the member it loses that, and somebody who shares it has
// given it a device of node-1. kube-scheduler would reserve that one for a Pod on node-0.
func TestAClaimThatMovesTakesItsMemberAlong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), deviceClass(), devices("node-0", 1), devices("node-1", 1),
			allocatedClaim("shared", "node-0", "device-0"), makeGroup("gang", 1), makeMembers("gang", 1, withSharedClaim))...)
		var moved atomic.Bool
		w.kube.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
			if !moved.CompareAndSwap(false, true) {
				return false, nil, nil
			}
			claim := allocatedClaim("shared", "node-1", "device-0")
			claim.ResourceVersion = "100"
			if err := w.kube.Tracker().Update(deviceClaimResource, claim, testNamespace); err != nil {
				return true, nil, err
			}
			return false, nil, nil
		})
		w.start()
		w.eventually("the member is placed", func() bool { return w.placed("gang") == 1 })
		if node := w.nodeOf()["gang-0"]; node != "node-1" {
			t.Errorf("it is on %s, and its device on node-1", node)
		}
	})
}

// TestDevicesOfOthersStay: a claim that a member shares with a Pod that runs, or that is
// reserved for a Pod of others, is left alone, however much it is in the way.
func TestDevicesOfOthersStay(t *testing.T) {
	tests := map[string]struct {
		claim *resourcev1.ResourceClaim
		other podOption
	}{
		"reserved for another Pod":                   {claim: allocatedClaim("shared", "node-0", "device-0", "other"), other: func(*schedulertesting.PodWrapper) {}},
		"reserved for a member and another Pod":      {claim: allocatedClaim("shared", "node-0", "device-0", "gang-0", "other"), other: func(*schedulertesting.PodWrapper) {}},
		"used by a Pod for which it is not reserved": {claim: allocatedClaim("shared", "node-0", "device-0"), other: withSharedClaim},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2), deviceClass(), devices("node-0", 1), devices("node-1", 1), tc.claim,
					makePod("other", onNode("node-0"), wholeNode, tc.other), makeGroup("gang", 2), makeMembers("gang", 2, withSharedClaim))...)
				w.start()
				w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				if writes := w.claimWrites(); len(writes) > 0 {
					t.Errorf("a claim that others use is written: %v", writes)
				}
			})
		})
	}
}

// TestAMemberWhoseClaimsAreToldIsPlannedAgain: who makes claims from templates tells their names
// in the status of the Pod, after the claims are there.
func TestAMemberWhoseClaimsAreToldIsPlannedAgain(t *testing.T) {
	b := newBench()
	group, pod := makeGroup("gang", 1), makePod("gang-0", inGroup("gang"), withClaimTemplate)
	b.SetGroup(group)
	b.SetPod(pod)
	b.cycle()
	b.fail(gangName, group.UID, queue.Refusal{Message: "its claim is not there", Unready: true}, time.Second, time.Second)
	b.time = b.time.Add(2 * time.Second)
	if _, is, _ := b.Next(); is {
		t.Fatal("the gang is planned again, and nothing has happened")
	}
	b.SetPod(withClaimNamed(pod, "made"))
	if _, is, _ := b.Next(); !is {
		t.Error("the gang is not planned again when its member's claim is told")
	}
}

// withClaimTemplate has a claim be made for a member.
func withClaimTemplate(w *schedulertesting.PodWrapper) {
	w.PodResourceClaims(corev1.PodResourceClaim{Name: "device", ResourceClaimTemplateName: ptr.To("template")})
}

// withClaimNamed is a Pod whose status names the claim that was made for it.
func withClaimNamed(pod *corev1.Pod, claim string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "device", ResourceClaimName: &claim}}
	return pod
}

// ofPod makes a claim one that was made for a Pod.
func ofPod(claim *resourcev1.ResourceClaim, pod *corev1.Pod) *resourcev1.ResourceClaim {
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	return claim
}

// TestMembersGoWhereTheirDevicesAre: after a crash the claims of some members are allocated, and
// those of others are not. Each node has room for one member.
func TestMembersGoWhereTheirDevicesAre(t *testing.T) {
	tests := map[string]struct {
		min    int32
		claims []*resourcev1.ResourceClaim
		want   map[string]string
	}{
		"each of some on its node": {
			min: 3,
			claims: []*resourcev1.ResourceClaim{deviceClaims("made-0")[0].(*resourcev1.ResourceClaim),
				allocatedClaim("made-1", "node-0", "device-0", "gang-1"), allocatedClaim("made-2", "node-2", "device-0", "gang-2")},
			want: map[string]string{"gang-0": "node-1", "gang-1": "node-0", "gang-2": "node-2"},
		},
		"one with a device that all nodes reach, where no other is left": {
			min: 2,
			claims: []*resourcev1.ResourceClaim{deviceClaims("made-0")[0].(*resourcev1.ResourceClaim), ofAll(allocatedClaim("made-1", "network", "device-0", "gang-1")),
				allocatedClaim("made-2", "node-2", "device-0", "gang-2")},
			want: map[string]string{"gang-0": "", "gang-2": "node-2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				objects := all(makeNodes("node", 3, 1), deviceClass(), makeGroup("gang", tc.min))
				for n := range 3 {
					if tc.want["gang-0"] != "" || n == 2 {
						objects = append(objects, devices(fmt.Sprintf("node-%d", n), 1))
					}
				}
				for i, object := range makeMembers("gang", 3, withClaimTemplate) {
					pod := withClaimNamed(object.(*corev1.Pod), fmt.Sprintf("made-%d", i))
					objects = append(objects, pod, ofPod(tc.claims[i], pod))
				}
				w := newWorld(t, objects...)
				w.start()
				w.eventually("the gang is placed", func() bool { return w.placed("gang") >= int(tc.min) })
				nodes := w.nodeOf()
				for pod, want := range tc.want {
					if nodes[pod] != want {
						t.Errorf("%s is on %q, want %q", pod, nodes[pod], want)
					}
				}
			})
		})
	}
}

// ofAll has a claim's device be one that all nodes reach.
func ofAll(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Status.Allocation.NodeSelector = nil
	return claim
}

// TestAClaimForExtendedResourcesIsMadeAnew: a scheduler made the claim for what a member requests
// as an extended resource, and died. kube-scheduler itself uses no such claim again.
func TestAClaimForExtendedResourcesIsMadeAnew(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		class := deviceClass().(*resourcev1.DeviceClass)
		class.Spec.ExtendedResourceName = ptr.To(string(gpu))
		members := makeMembers("gang", 2, func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{gpu: "1"}) })
		leftover := ofPod(allocatedClaim("left", "node-0", "device-0", "gang-0"), members[0].(*corev1.Pod))
		leftover.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		w := newWorld(t, all(makeNodes("node", 1, 4), class, devices("node-0", 2), leftover, makeGroup("gang", 2), members)...)
		w.start()
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
		if slices.Contains(w.allocated(), "left") {
			t.Error("the claim that was left is there")
		}
	})
}

// TestAGangIsPlacedWhenADeviceIsFree: no node has changed since the gang was refused.
func TestAGangIsPlacedWhenADeviceIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		class := deviceClass().(*resourcev1.DeviceClass)
		class.Spec.ExtendedResourceName = ptr.To(string(gpu))
		members := makeMembers("gang", 2, func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{gpu: "1"}) })
		w := newWorld(t, all(makeNodes("node", 1, 4), class, devices("node-0", 2), allocatedClaim("other", "node-0", "device-0"), makeGroup("gang", 2), members)...)
		w.start()
		got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "room for 1 of the 2 members"; !strings.Contains(got.Message, want) {
			t.Errorf("message %q, want it to contain %q", got.Message, want)
		}
		if err := w.kube.ResourceV1().ResourceClaims(testNamespace).Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	})
}

// TestAGangIsPlacedWhenADeviceClassNamesItsResource: a device plugin provides the resource on another node, which is full.
func TestAGangIsPlacedWhenADeviceClassNamesItsResource(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		class := deviceClass().(*resourcev1.DeviceClass)
		other := makeNodes("other", 1, 16)[0].(*corev1.Node)
		other.Status.Capacity[gpu], other.Status.Allocatable[gpu] = resource.MustParse("1"), resource.MustParse("1")
		needs := func(p *schedulertesting.PodWrapper) { p.Req(map[corev1.ResourceName]string{gpu: "1"}) }
		w := newWorld(t, all(makeNodes("node", 1, 16), other, class, devices("node-0", 2), makePod("user", onNode("other-0"), needs),
			makeGroup("gang", 2), makeMembers("gang", 2, needs))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		class = class.DeepCopy()
		class.ResourceVersion, class.Spec.ExtendedResourceName = "2", ptr.To(string(gpu))
		if _, err := w.kube.ResourceV1().DeviceClasses().Update(t.Context(), class, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	})
}

// TestAGangIsPlacedWhenDevicesBecomeResourcesOfNodes: an administrator replaces a DRA driver by a device plugin, or the other way round,
// after a gang was refused. A Pod is nominated meanwhile.
func TestAGangIsPlacedWhenDevicesBecomeResourcesOfNodes(t *testing.T) {
	for name, back := range map[string]bool{"a device plugin comes": false, "a DRA driver comes": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				class := deviceClass().(*resourcev1.DeviceClass)
				named := ptr.To(string(gpu))
				if !back {
					class.Spec.ExtendedResourceName = named
				}
				port := func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }
				w := newWorld(t, all(makeNodes("node", 1, 16), class, devices("node-0", 2), allocatedClaim("other", "node-0", "device-0"), makePod("victim", onNode("node-0"), port))...)
				w.lingers = true
				w.start()
				w.create(makePod("nominee", ofPriority(5), port))
				w.eventually("the Pod is nominated", func() bool { return len(w.engine().queue.Nominated()) == 1 })
				for _, object := range all(makeGroup("gang", 2), makeMembers("gang", 2, func(p *schedulertesting.PodWrapper) { p.Req(map[corev1.ResourceName]string{gpu: "1"}) })) {
					w.create(object)
				}
				w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				class = class.DeepCopy()
				class.ResourceVersion, class.Spec.ExtendedResourceName = "2", nil
				if back {
					class.Spec.ExtendedResourceName = named
				}
				if _, err := w.kube.ResourceV1().DeviceClasses().Update(t.Context(), class, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				if back {
					if err := w.kube.ResourceV1().ResourceClaims(testNamespace).Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				} else {
					w.changeNode("node-0", func(node *corev1.Node) {
						node.Status.Capacity[gpu], node.Status.Allocatable[gpu] = resource.MustParse("4"), resource.MustParse("4")
					})
				}
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
			})
		})
	}
}

// TestDevicesAreGivenBackAllTheSame, of a gang that is not complete: the API server could not
// write that at first, and the gang has no cycle in which it is tried again.
func TestDevicesAreGivenBackAllTheSame(t *testing.T) {
	claims := resourcev1.SchemeGroupVersion.WithResource("resourceclaims").GroupResource()
	tests := map[string]error{
		"it had no time":             apierrors.NewTimeoutError("not now", 1),
		"the claim has just changed": apierrors.NewConflict(claims, "broken-0", errors.New("changed")),
	}
	for name, refusal := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 4), deviceClass(), devices("node-0", 1),
					allocatedClaim("broken-0", "node-0", "device-0", "broken-0"), makeGroup("broken", 2), makeMembers("broken", 1, withDeviceClaim),
					deviceClaims("whole-0"), makeGroup("whole", 1), makeMembers("whole", 1, withDeviceClaim))...)
				var refused atomic.Bool
				w.kube.PrependReactor("update", "resourceclaims", func(clienttesting.Action) (bool, apiruntime.Object, error) {
					return !refused.Swap(true), nil, refusal
				})
				w.start()
				w.eventually("the gang that is complete is placed", func() bool { return w.placed("whole") == 1 })
			})
		})
	}
}

// TestDevicesAreGivenBackWhenTheLastOneHasGone: a claim was reserved for a member which is gone,
// and that is taken back a while later.
func TestDevicesAreGivenBackWhenTheLastOneHasGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), deviceClass(), devices("node-0", 1),
			allocatedClaim("shared", "node-0", "device-0", "broken-0", "gone"), makeGroup("broken", 2), makeMembers("broken", 1, withSharedClaim),
			deviceClaims("whole-0"), makeGroup("whole", 1), makeMembers("whole", 1, withDeviceClaim))...)
		w.start()
		w.condition("broken", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		claim := w.claim("shared")
		claim.Status.ReservedFor = claim.Status.ReservedFor[:1]
		if _, err := w.kube.ResourceV1().ResourceClaims(testNamespace).UpdateStatus(w.t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the gang that is complete is placed", func() bool { return w.placed("whole") == 1 })
	})
}

// withClaims is a client with other ResourceClaims.
type withClaims struct {
	kubernetes.Interface
	of func(claims resourcev1client.ResourceClaimInterface) resourcev1client.ResourceClaimInterface
}

// IsWatchListSemanticsUnSupported is as in timely.
func (withClaims) IsWatchListSemanticsUnSupported() bool { return true }

func (w withClaims) ResourceV1() resourcev1client.ResourceV1Interface {
	return withClaimsV1{w.Interface.ResourceV1(), w}
}

type withClaimsV1 struct {
	resourcev1client.ResourceV1Interface
	with withClaims
}

func (w withClaimsV1) ResourceClaims(namespace string) resourcev1client.ResourceClaimInterface {
	return w.with.of(w.ResourceV1Interface.ResourceClaims(namespace))
}

// slowClaims are ResourceClaims of which a write of the status takes some time.
type slowClaims struct {
	resourcev1client.ResourceClaimInterface
	takes time.Duration
}

func (s slowClaims) UpdateStatus(ctx context.Context, claim *resourcev1.ResourceClaim, opts metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	if err := sleep(ctx, s.takes); err != nil {
		return nil, err
	}
	return s.ResourceClaimInterface.UpdateStatus(ctx, claim, opts)
}

// TestAnAPIServerThatHangsKeepsNoGangWaitingForItsDevices: it does not answer when a device is to be given back, and then
// the node of the device has room.
func TestAnAPIServerThatHangsKeepsNoGangWaitingForItsDevices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), deviceClass(), devices("node-0", 1), makePod("busy", onNode("node-0"), cores("4")),
			allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), makeGroup("gang", 1), makeMembers("gang", 1, withDeviceClaim))...)
		w.client = withClaims{timely{w.kube}, func(claims resourcev1client.ResourceClaimInterface) resourcev1client.ResourceClaimInterface {
			return slowClaims{claims, time.Hour}
		}}
		w.start()
		w.eventually("the device is being given back", func() bool { return strings.Contains(w.told("gang").Message, "short of 1 cpu") })
		w.finish("busy")
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 1 })
	})
}

// TestTheFirstGangKeepsItsReservationWhileItGivesDevicesBack, which takes three seconds for each.
func TestTheFirstGangKeepsItsReservationWhileItGivesDevicesBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 4), deviceClass(), devices("node-0", 1), devices("node-1", 1),
			makeGroup("one", 1, runsFor(600)), makePod("one-0", inGroup("one"), onNode("node-0"), cores("4")),
			makeGroup("two", 1, runsFor(600)), makePod("two-0", inGroup("two"), onNode("node-1"), cores("4")),
			allocatedClaim("gang-0", "node-0", "device-0", "gang-0"), allocatedClaim("gang-1", "node-1", "device-0", "gang-1"),
			makeGroup("gang", 2, runsFor(60)), makeMembers("gang", 2, withDeviceClaim))...)
		w.client = withClaims{timely{w.kube}, func(claims resourcev1client.ResourceClaimInterface) resourcev1client.ResourceClaimInterface {
			return slowClaims{claims, 3 * time.Second}
		}}
		w.start()
		isReserved := func() bool { return w.engine().room.Of(gangNamed("gang")) != nil }
		w.eventually("room is reserved for the gang", isReserved)
		w.eventually("both devices are given back, and the gang waits as before", func() bool {
			if !isReserved() {
				t.Fatalf("the gang has lost its reservation: %s", w.told("gang").Message)
			}
			free := w.claim("gang-0").Status.Allocation == nil && w.claim("gang-1").Status.Allocation == nil
			return free && !strings.Contains(w.told("gang").Message, whileFreeing)
		})
	})
}

// TestAGangThatWantsDevicesIsToldThatThoseOfOthersDoNotCount: nobody is preempted for it and nothing is reserved, and its
// condition says why.
func TestAGangThatWantsDevicesIsToldThatThoseOfOthersDoNotCount(t *testing.T) {
	for name, member := range map[string][]podOption{
		"it may preempt": {ofPriority(10), withDeviceClaim},
		"it starves":     {neverPreempts, withDeviceClaim},
		"it may preempt, and asks for an extended resource of a DeviceClass": {ofPriority(10), func(w *schedulertesting.PodWrapper) {
			w.Req(map[corev1.ResourceName]string{gpu: "1"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				class := deviceClass().(*resourcev1.DeviceClass)
				class.Spec.ExtendedResourceName = ptr.To(string(gpu))
				w := newWorld(t, all(makeNodes("node", 1, 4), class, devices("node-0", 1), allocatedClaim("low-0", "node-0", "device-0", "low-0"),
					makePod("low-0", onNode("node-0"), withDeviceClaim), deviceClaims("gang-0"), makeGroup("gang", 1), makeMembers("gang", 1, member...))...)
				w.args = `{"initialBackoff":"50ms","maxBackoff":"200ms"}`
				w.start()
				w.eventually("it is told", func() bool {
					return strings.Contains(w.told("gang").Message, "devices that other Pods would give back are not counted on")
				})
				if w.placed("low") != 1 {
					t.Error("a Pod was preempted for it")
				}
			})
		})
	}
}
