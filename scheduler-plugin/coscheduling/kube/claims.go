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
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulerutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// A scheduler that dies between the allocation of a ResourceClaim and the binding of its Pod
// leaves devices of a node to a Pod that is nowhere, and so does a binding that fails. For
// its own Pods kube-scheduler mends that in the PostFilter of DynamicResources, when they find
// no node. This file does it for Pods that are placed together, with what follows from that:
// a claim that is reserved for several of them is as much a leftover as that of one. It mirrors
// deallocateOrDeletePodClaims and deleteClaim of pkg/scheduler/framework/plugins/dynamicresources,
// whose source upstream_test.go compares.

// Leftovers are the claims that have devices, although nobody has a use for these: they are
// reserved for nobody but Pods that wait, which are given, and no Pod that has a node
// uses them. The Pods are of one namespace and this profile.
func Leftovers(s *Scheduler, profile framework.Framework, waiting []*corev1.Pod) ([]*resourcev1.ResourceClaim, error) {
	manager := profile.SharedDRAManager()
	if manager == nil || !slices.ContainsFunc(waiting, mayHaveClaims) {
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
		if !wantsExtendedResources(pod) {
			continue
		}
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

// madeIndex is the name of the index of ResourceClaims by the UIDs of the Pods for which schedulers
// have made them, for extended resources. There may be tens of thousands of others.
const madeIndex = "lockstepMadeForPod"

// indexClaims has the scheduler's informer of ResourceClaims have the index madeIndex. It comes
// before the informer is started, and may come again.
func indexClaims(s *Scheduler) error {
	for _, profile := range s.sched.Profiles {
		if profile.SharedDRAManager() == nil {
			continue // nobody asks for claims, and the API server may have none
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

// claimsMadeFor are the names of the claims that schedulers have made for what a Pod requests of
// extended resources.
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

// isMadeFor says whether a scheduler has made a claim for what a Pod requests of extended
// resources.
func isMadeFor(claim *resourcev1.ResourceClaim, pod types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return isForExtendedResources(claim) && owner != nil && owner.UID == pod
}

// claimIndex is the name of the index of Pods by the claims that they name, by namespace and
// name, which DynamicResources adds for its profile. Without it all Pods of the cluster are to be
// looked at: the scheduler's informer has no index by namespace.
const claimIndex = "schedulerPodResourceClaim-"

// isUsed says whether a Pod that has a node names a claim.
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

// HaveDevices says whether a claim has devices that Pods name, whoever has reserved it. The
// Pods are of one namespace and this profile.
func HaveDevices(profile framework.Framework, pods []*corev1.Pod) bool {
	manager := profile.SharedDRAManager()
	return manager != nil && slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(claimNames(pod), func(name string) bool {
			claim, err := manager.ResourceClaims().Get(pod.Namespace, name)
			return err == nil && claim.Status.Allocation != nil
		})
	})
}

// hasNode says whether a Pod is on a node, or about to be bound to one.
func hasNode(s *Scheduler, pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" {
		return true
	}
	_, err := s.sched.Cache.GetPod(pod)
	return err == nil
}

// mayHaveClaims says whether a Pod may have claims, of its own or made for it.
func mayHaveClaims(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || wantsExtendedResources(pod)
}

// claimNames are the names of the claims that a Pod's spec is about, as far as they are known.
func claimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, *name)
		}
	}
	return names
}

// isAllocatedFor says whether a claim has devices that nobody else has reserved.
func isAllocatedFor(claim *resourcev1.ResourceClaim, pods sets.Set[types.UID]) bool {
	return claim.Status.Allocation != nil && claim.DeletionTimestamp == nil &&
		!slices.ContainsFunc(claim.Status.ReservedFor, func(by resourcev1.ResourceClaimConsumerReference) bool { return !pods.Has(by.UID) })
}

// isForExtendedResources says whether a scheduler has made the claim, for what a Pod requests
// of extended resources. DynamicResources takes it for a leftover as soon as it sees it.
func isForExtendedResources(claim *resourcev1.ResourceClaim) bool {
	return claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

// wantsExtendedResources says whether a Pod requests what a class of devices may stand for.
func wantsExtendedResources(pod *corev1.Pod) bool {
	for name := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if schedulerutil.IsDRAExtendedResourceName(name) {
			return true
		}
	}
	return false
}

// FreeClaim gives the devices of a leftover back, and says whether it did. That the claim is
// gone, or has changed, is no error: it is not the leftover any more that it was.
func FreeClaim(ctx context.Context, profile framework.Framework, leftover *resourcev1.ResourceClaim) (bool, error) {
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

// FreedPatience is how long it takes at most until the scheduler has seen that a claim is free,
// and DoubtPatience that one has changed of which it is not known whether it has.
const (
	FreedPatience = 30 * time.Second
	DoubtPatience = 5 * time.Second
)

// AwaitChanged waits until the scheduler has seen that a claim is not any more what FreeClaim was
// given, or the patience ends. A Pod for which such a claim was reserved would be bound without a device, if it
// were placed before.
func AwaitChanged(ctx context.Context, profile framework.Framework, claim *resourcev1.ResourceClaim, patience time.Duration) {
	manager := profile.SharedDRAManager()
	_ = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		now, err := manager.ResourceClaims().Get(claim.Namespace, claim.Name)
		return err != nil || now.UID != claim.UID || now.DeletionTimestamp != nil || now.Status.Allocation == nil ||
			now.ResourceVersion != claim.ResourceVersion && !isForExtendedResources(claim), nil
	})
}
