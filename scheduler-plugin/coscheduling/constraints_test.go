// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/storage/volume"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// gpu is an extended resource.
const gpu = corev1.ResourceName("nvidia.com/gpu")

func withGPUs(n int) func(apiruntime.Object) apiruntime.Object {
	return func(object apiruntime.Object) apiruntime.Object {
		node := object.(*corev1.Node)
		node.Status.Capacity[gpu] = *resource.NewQuantity(int64(n), resource.DecimalSI)
		node.Status.Allocatable[gpu] = node.Status.Capacity[gpu]
		return node
	}
}

func changed(objects []apiruntime.Object, change func(apiruntime.Object) apiruntime.Object) []apiruntime.Object {
	for i := range objects {
		objects[i] = change(objects[i])
	}
	return objects
}

// localVolume is a volume of the class "local" on a node.
func localVolume(node string) apiruntime.Object {
	pv := schedulertesting.MakePersistentVolume().Name("volume-"+node).StorageClassName("local").
		AccessModes([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}).
		Capacity(corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}).
		NodeAffinityIn(corev1.LabelHostname, []string{node}).Obj()
	pv.Status.Phase = corev1.VolumeAvailable
	return pv
}

// localClass binds volumes when their first Pod is placed.
func localClass() apiruntime.Object {
	return schedulertesting.MakeStorageClass().Name("local").Provisioner(volume.NotSupportedProvisioner).
		VolumeBindingMode(storagev1.VolumeBindingWaitForFirstConsumer).Obj()
}

// volumeClaims are claims of the class "local" for n members of a group.
func volumeClaims(group string, n int) []apiruntime.Object {
	var claims []apiruntime.Object
	for i := range n {
		claim := schedulertesting.MakePersistentVolumeClaim().Namespace(testNamespace).Name(fmt.Sprintf("%s-%d", group, i)).
			StorageClassName(ptr.To("local")).AccessModes([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}).
			Resources(corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}).Obj()
		claim.UID = types.UID("uid-of-claim-" + claim.Name)
		claims = append(claims, claim)
	}
	return claims
}

func withVolumeClaim(w *schedulertesting.PodWrapper) { w.PVC(w.Obj().Name) }

// completeVolumes stands in for the controller of volumes: a claim whose volume
// the scheduler has chosen is bound to it.
func (w *world) completeVolumes() {
	w.kube.PrependReactor("update", "persistentvolumes", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		chosen := action.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolume)
		ref := chosen.Spec.ClaimRef
		if ref == nil {
			return false, nil, nil
		}
		claims := corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
		object, err := w.kube.Tracker().Get(claims, ref.Namespace, ref.Name)
		if err != nil {
			return true, nil, err
		}
		claim := object.(*corev1.PersistentVolumeClaim).DeepCopy()
		claim.Spec.VolumeName, claim.Status.Phase = chosen.Name, corev1.ClaimBound
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
		return false, nil, w.kube.Tracker().Update(claims, claim, claim.Namespace)
	})
}

// takenVolumes are the volumes that a claim has, by the name of the claim.
func (w *world) takenVolumes() map[string]string {
	w.t.Helper()
	volumes, err := w.kube.CoreV1().PersistentVolumes().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	taken := make(map[string]string)
	for i := range volumes.Items {
		if ref := volumes.Items[i].Spec.ClaimRef; ref != nil {
			taken[ref.Name] = volumes.Items[i].Name
		}
	}
	return taken
}

// deviceClass is a class of all devices of a driver.
func deviceClass() apiruntime.Object {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "device"}}
}

// devices are n devices of a node.
func devices(node string, n int) apiruntime.Object {
	slice := schedulertesting.MakeResourceSlice(node, "driver.example")
	for i := range n {
		slice.Device(fmt.Sprintf("device-%d", i))
	}
	return slice.Obj()
}

// deviceClaims are claims on one device each, by name.
func deviceClaims(names ...string) []apiruntime.Object {
	var claims []apiruntime.Object
	for _, name := range names {
		claims = append(claims, schedulertesting.MakeResourceClaim().Namespace(testNamespace).Name(name).UID("uid-of-claim-"+name).Request("device").Obj())
	}
	return claims
}

func memberNames(group string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", group, i)
	}
	return names
}

// withDeviceClaim has a member use the claim of its own name.
func withDeviceClaim(w *schedulertesting.PodWrapper) {
	w.PodResourceClaims(corev1.PodResourceClaim{Name: "device", ResourceClaimName: ptr.To(w.Obj().Name)})
}

// withSharedClaim has a member use the device of the claim that all of its gang
// use.
func withSharedClaim(w *schedulertesting.PodWrapper) {
	w.PodResourceClaims(corev1.PodResourceClaim{Name: "device", ResourceClaimName: ptr.To("shared")})
}

// allocated are the claims that have a device.
func (w *world) allocated() []string {
	w.t.Helper()
	claims, err := w.kube.ResourceV1().ResourceClaims(testNamespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for i := range claims.Items {
		if claims.Items[i].Status.Allocation != nil {
			names = append(names, claims.Items[i].Name)
		}
	}
	return names
}

// attached is a volume of a storage driver, bound to a claim already, and the
// limit of attached volumes on a node.
func attached(claim string) []apiruntime.Object {
	pv := schedulertesting.MakePersistentVolume().Name("volume-" + claim).StorageClassName("remote").
		AccessModes([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}).
		Capacity(corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}).
		PersistentVolumeSource(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver.example", VolumeHandle: claim}}).Obj()
	pvc := schedulertesting.MakePersistentVolumeClaim().Namespace(testNamespace).Name(claim).VolumeName(pv.Name).
		StorageClassName(ptr.To("remote")).Annotation(volume.AnnBindCompleted, "yes").Obj()
	pvc.UID = types.UID("uid-of-claim-" + claim)
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: testNamespace, Name: claim, UID: pvc.UID}
	return []apiruntime.Object{pv, pvc}
}

func attachLimit(node string, n int32) apiruntime.Object {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: "driver.example", NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &n}}},
	}}
}

// TestGangWithMoreThanCores places gangs whose members need what only plugins
// other than that for resources know of, and leaves alone those that can't have
// it all, with everything that was set aside for them given back.
func TestGangWithMoreThanCores(t *testing.T) {
	tests := map[string]struct {
		objects []apiruntime.Object
		members []apiruntime.Object
		// wantPlaced are how many members are placed: all or none. wantPerNode is
		// the most that a node holds.
		wantPlaced  int
		wantPerNode int
		wantMessage string // of a gang that waits
	}{
		"GPUs on the nodes that have them": {
			objects:    all(makeNodes("plain", 2, 8), changed(makeNodes("gpu", 2, 8), withGPUs(2))),
			members:    makeMembers("gang", 4, func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{gpu: "1"}) }),
			wantPlaced: 4, wantPerNode: 2,
		},
		"more GPUs than there are": {
			objects:     all(makeNodes("plain", 2, 8), changed(makeNodes("gpu", 2, 8), withGPUs(2))),
			members:     makeMembers("gang", 5, func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{gpu: "1"}) }),
			wantMessage: "short of 1 nvidia.com/gpu",
		},
		"local volumes, one on each node": {
			objects:    all(makeNodes("node", 3, 8), localClass(), localVolume("node-0"), localVolume("node-1"), localVolume("node-2"), volumeClaims("gang", 3)),
			members:    makeMembers("gang", 3, withVolumeClaim),
			wantPlaced: 3, wantPerNode: 1,
		},
		"more local volumes than there are": {
			objects:     all(makeNodes("node", 3, 8), localClass(), localVolume("node-0"), localVolume("node-1"), volumeClaims("gang", 3)),
			members:     makeMembers("gang", 3, withVolumeClaim),
			wantMessage: "didn't find available persistent volumes to bind",
		},
		"attached volumes, as many as a node takes": {
			objects:    all(makeNodes("node", 2, 8), attachLimit("node-0", 1), attachLimit("node-1", 1), attached("gang-0"), attached("gang-1")),
			members:    makeMembers("gang", 2, withVolumeClaim),
			wantPlaced: 2, wantPerNode: 1,
		},
		"more attached volumes than the nodes take": {
			objects: all(makeNodes("node", 2, 8), attachLimit("node-0", 1), attachLimit("node-1", 1), attached("gang-0"), attached("gang-1"), attached("gang-2")),
			members: makeMembers("gang", 3, withVolumeClaim), wantMessage: "max volume count",
		},
		"devices by claims of their own": {
			objects:    all(makeNodes("node", 2, 8), deviceClass(), devices("node-0", 2), devices("node-1", 2), deviceClaims(memberNames("gang", 4)...)),
			members:    makeMembers("gang", 4, withDeviceClaim),
			wantPlaced: 4, wantPerNode: 2,
		},
		"a device that all of them share": {
			objects:    all(makeNodes("node", 2, 8), deviceClass(), devices("node-1", 1), deviceClaims("shared")),
			members:    makeMembers("gang", 3, withSharedClaim),
			wantPlaced: 3, wantPerNode: 3,
		},
		"more devices than there are": {
			objects:     all(makeNodes("node", 2, 8), deviceClass(), devices("node-0", 2), devices("node-1", 2), deviceClaims(memberNames("gang", 5)...)),
			members:     makeMembers("gang", 5, withDeviceClaim),
			wantMessage: "short of 1 devices of class device",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(tc.objects, makeGroup("gang", int32(len(tc.members))), tc.members)...)
				w.completeVolumes()
				before := w.takenVolumes()
				w.start()
				if tc.wantPlaced == 0 {
					got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
					if !strings.Contains(got.Message, tc.wantMessage) {
						t.Errorf("message %q, want one with %q", got.Message, tc.wantMessage)
					}
					if n := w.placed("gang"); n != 0 {
						t.Errorf("%d members are placed of a gang that can't have all it needs", n)
					}
					if taken := w.takenVolumes(); len(taken) != len(before) {
						t.Errorf("volumes %v are taken for a gang that waits", taken)
					}
					if names := w.allocated(); len(names) > 0 {
						t.Errorf("claims %v of a gang that waits have devices", names)
					}
					return
				}
				w.eventually("all members are placed", func() bool { return w.placed("gang") == tc.wantPlaced })
				perNode := make(map[string]int)
				for pod, node := range w.nodeOf() {
					perNode[node]++
					if volume := w.takenVolumes()[pod]; strings.HasPrefix(volume, "volume-node-") && volume != "volume-"+node {
						t.Errorf("%s is on %s, and its volume is %s", pod, node, volume)
					}
				}
				for node, n := range perNode {
					if n > tc.wantPerNode {
						t.Errorf("%d members are on %s, which has what %d need", n, node, tc.wantPerNode)
					}
				}
			})
		})
	}
}

// TestWhatAGangGivesBackOthersGet: the volumes and devices that were set aside
// while a gang was planned in vain are there for the next one.
func TestWhatAGangGivesBackOthersGet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 8), localClass(), localVolume("node-0"), localVolume("node-1"), deviceClass(), devices("node-0", 1), devices("node-1", 1),
			volumeClaims("larger", 3), deviceClaims(memberNames("larger", 3)...), makeGroup("larger", 3), makeMembers("larger", 3, withVolumeClaim, withDeviceClaim))...)
		w.completeVolumes()
		w.start()
		w.condition("larger", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		for _, object := range all(volumeClaims("fits", 2), deviceClaims(memberNames("fits", 2)...), makeGroup("fits", 2), makeMembers("fits", 2, withVolumeClaim, withDeviceClaim)) {
			w.create(object)
		}
		w.eventually("the gang that fits is placed", func() bool { return w.placed("fits") == 2 })
		if n := w.placed("larger"); n != 0 {
			t.Errorf("%d members are placed of a gang that can't have all it needs", n)
		}
	})
}
