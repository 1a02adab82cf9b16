// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// If a scheduler dies between the allocation of a ResourceClaim and the binding of its Pod, or if the binding fails,
// the claim keeps devices of a node for a Pod that is on no node. kube-scheduler frees the claims of its own Pods in
// the PostFilter of DynamicResources, when a Pod finds no node. This file does the same for Pods that are placed
// together; a claim that is reserved for several of these Pods is also a leftover. It mirrors
// deallocateOrDeletePodClaims and deleteClaim of pkg/scheduler/framework/plugins/dynamicresources; upstream_test.go
// compares their source.

// Leftovers returns the claims that have devices which no Pod uses: only Pods in `waiting` have reserved the claim, and
// no Pod with a node names it. The Pods in `waiting` are of one namespace and have this profile.
func Leftovers(s *Scheduler, profile framework.Framework, waiting []*corev1.Pod) ([]*resourcev1.ResourceClaim, error) {
	manager := profile.SharedDRAManager()
	if manager == nil {
		return nil, nil
	}
	uids := sets.New[types.UID]()
	for _, pod := range waiting {
		uids.Insert(pod.UID)
	}
	found := make(map[string]*resourcev1.ResourceClaim)
	for _, pod := range waiting {
		for _, name := range claimNames(pod) {
			if claim, err := manager.ResourceClaims().Get(pod.Namespace, name); err == nil && isAllocatedFor(claim, uids) {
				found[name] = claim
			}
		}
	}
	for _, pod := range waiting {
		made, err := claimsMadeFor(profile, pod)
		if err != nil {
			return nil, err
		}
		for _, name := range made {
			if claim, err := manager.ResourceClaims().Get(pod.Namespace, name); err == nil && isMadeFor(claim, pod.UID) && claim.DeletionTimestamp == nil {
				found[name] = claim
			}
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	for name := range found {
		if used, err := isUsed(s, profile, waiting[0].Namespace, name); err != nil {
			return nil, err
		} else if used {
			delete(found, name)
		}
	}
	leftovers := make([]*resourcev1.ResourceClaim, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		leftovers = append(leftovers, found[name])
	}
	return leftovers, nil
}

// madeIndex is the name of an index of ResourceClaims. It has the claims that a scheduler has created for a Pod's
// extended resources, by the UID of the Pod. Without the index, each search for these would read all claims, which may
// be tens of thousands.
const madeIndex = "lockstepMadeForPod"

// indexClaims adds the index madeIndex to the scheduler's informer of ResourceClaims. Call it before the informer is
// started; a second call does nothing.
func indexClaims(s *Scheduler) error {
	for _, profile := range s.sched.Profiles {
		if profile.SharedDRAManager() == nil {
			continue // claims are not watched, and the API server may not serve them
		}
		claims := profile.SharedInformerFactory().Resource().V1().ResourceClaims().Informer()
		if _, is := claims.GetIndexer().GetIndexers()[madeIndex]; is {
			return nil
		}
		err := claims.AddIndexers(cache.Indexers{madeIndex: func(obj any) ([]string, error) {
			if claim, ok := obj.(*resourcev1.ResourceClaim); ok && isForExtendedResources(claim) {
				if owner := metav1.GetControllerOfNoCopy(claim); owner != nil {
					return []string{string(owner.UID)}, nil
				}
			}
			return nil, nil
		}})
		if err != nil {
			return fmt.Errorf("indexing ResourceClaims by the Pods for which they were made: %w", err)
		}
		return nil // all profiles have one informer
	}
	return nil
}

// claimsMadeFor returns the names of the claims that a scheduler has created for a Pod's extended resources.
func claimsMadeFor(profile framework.Framework, pod *corev1.Pod) ([]string, error) {
	claims := profile.SharedInformerFactory().Resource().V1().ResourceClaims().Informer().GetIndexer()
	keys, err := claims.IndexKeys(madeIndex, string(pod.UID))
	if err != nil {
		return nil, fmt.Errorf("looking for ResourceClaims that were made for Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	var names []string
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, pod.Namespace+"/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// isMadeFor reports whether a scheduler has created a claim for a Pod's extended resources.
func isMadeFor(claim *resourcev1.ResourceClaim, pod types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return isForExtendedResources(claim) && owner != nil && owner.UID == pod
}

// claimIndex is the prefix of the name of an index that the plugin DynamicResources adds; the profile's name follows.
// The index has Pods by the claims (namespace/name) that they name. Without the index, all Pods of the cluster would
// have to be read, because the scheduler's informer has no index by namespace.
const claimIndex = "schedulerPodResourceClaim-"

// isUsed reports whether a Pod with a node names a claim.
func isUsed(s *Scheduler, profile framework.Framework, namespace, claim string) (bool, error) {
	pods := profile.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer()
	named, err := pods.ByIndex(claimIndex+profile.ProfileName(), namespace+"/"+claim)
	if err != nil {
		return false, fmt.Errorf("looking for Pods with ResourceClaim %s/%s: %w", namespace, claim, err)
	}
	return slices.ContainsFunc(named, func(obj any) bool {
		pod, ok := obj.(*corev1.Pod)
		return ok && hasNode(s, pod)
	}), nil
}

// HaveDevices reports whether any claim of the Pods is allocated. The Pods are of one namespace and have this profile.
func HaveDevices(profile framework.Framework, pods []*corev1.Pod) bool {
	manager := profile.SharedDRAManager()
	return manager != nil && slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(claimNames(pod), func(name string) bool {
			claim, err := manager.ResourceClaims().Get(pod.Namespace, name)
			return err == nil && claim.Status.Allocation != nil
		})
	})
}

// hasNode reports whether a Pod is on a node, or about to be bound to one.
func hasNode(s *Scheduler, pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return true
	}
	_, err := s.sched.Cache.GetPod(pod)
	return err == nil
}

// claimNames returns the names of the claims in a Pod's spec. It leaves out claims that have not been created from
// their template yet.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, *name)
		}
	}
	return names
}

// isAllocatedFor reports whether a claim has devices that only the given Pods have reserved.
func isAllocatedFor(claim *resourcev1.ResourceClaim, pods sets.Set[types.UID]) bool {
	return claim.Status.Allocation != nil && claim.DeletionTimestamp == nil &&
		!slices.ContainsFunc(claim.Status.ReservedFor, func(by resourcev1.ResourceClaimConsumerReference) bool { return !pods.Has(by.UID) })
}

// isForExtendedResources reports whether a scheduler has created the claim for a Pod's extended resources. The plugin
// DynamicResources frees such a claim as soon as it has no use for it.
func isForExtendedResources(claim *resourcev1.ResourceClaim) bool {
	return claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

// FreeClaim frees the devices of a leftover claim, and reports whether it did. If the claim has been deleted or has
// changed, it does nothing and returns no error. It returns after RequestTime in any case.
func FreeClaim(ctx context.Context, profile framework.Framework, leftover *resourcev1.ResourceClaim) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTime)
	defer cancel()
	claims, claim := profile.ClientSet().ResourceV1().ResourceClaims(leftover.Namespace), leftover.DeepCopy()
	var err error
	if isForExtendedResources(claim) {
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		if _, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err == nil {
			err = claims.Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID}})
		}
	} else {
		claim.Status = resourcev1.ResourceClaimStatus{}
		_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("giving back the devices of ResourceClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return true, nil
}

// FreedPatience is how long to wait in AwaitChanged for the scheduler to observe that a claim is free. DoubtPatience is
// the same for a claim that may or may not have been freed.
const (
	FreedPatience = 30 * time.Second
	DoubtPatience = 5 * time.Second
)

// AwaitChanged waits until the scheduler has observed that a claim was freed or has changed, but no longer than
// patience. Without the wait, a Pod could be placed with the old state of the claim and be bound without a device.
func AwaitChanged(ctx context.Context, profile framework.Framework, claim *resourcev1.ResourceClaim, patience time.Duration) {
	manager := profile.SharedDRAManager()
	_ = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		now, err := manager.ResourceClaims().Get(claim.Namespace, claim.Name)
		return err != nil || now.UID != claim.UID || now.DeletionTimestamp != nil || now.Status.Allocation == nil ||
			now.ResourceVersion != claim.ResourceVersion && !isForExtendedResources(claim), nil
	})
}
