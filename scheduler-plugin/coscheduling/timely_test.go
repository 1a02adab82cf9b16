// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"errors"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	clienttesting "k8s.io/client-go/testing"
)

var deviceClaimResource = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")

// updateClaim stands in for the API server's versions of ResourceClaims: an update of another
// than the stored one is a conflict, and kube-scheduler sees none that has no new version.
func (w *world) updateClaim(action clienttesting.Action) (bool, apiruntime.Object, error) {
	claim := action.(clienttesting.UpdateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
	object, err := w.kube.Tracker().Get(deviceClaimResource, claim.Namespace, claim.Name)
	if err != nil {
		return true, nil, err
	}
	stored := object.(*resourcev1.ResourceClaim).ResourceVersion
	if claim.ResourceVersion != stored {
		return true, nil, apierrors.NewConflict(deviceClaimResource.GroupResource(), claim.Name, errors.New("it has changed"))
	}
	version, err := strconv.Atoi(stored)
	if err != nil {
		return true, nil, err
	}
	claim.ResourceVersion = strconv.Itoa(version + 1)
	return true, claim, w.kube.Tracker().Update(deviceClaimResource, claim, claim.Namespace)
}

// timely is the fake API server as a real client has it: a write of a ResourceClaim is not
// sent once its context has ended.
type timely struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported has informers list and then watch: the fake API
// server can't do both in one request.
func (timely) IsWatchListSemanticsUnSupported() bool { return true }

func (c timely) ResourceV1() resourcev1client.ResourceV1Interface {
	return timelyResources{c.Interface.ResourceV1()}
}

type timelyResources struct {
	resourcev1client.ResourceV1Interface
}

func (c timelyResources) ResourceClaims(namespace string) resourcev1client.ResourceClaimInterface {
	return timelyClaims{c.ResourceV1Interface.ResourceClaims(namespace)}
}

type timelyClaims struct {
	resourcev1client.ResourceClaimInterface
}

func (c timelyClaims) Create(ctx context.Context, claim *resourcev1.ResourceClaim, options metav1.CreateOptions) (*resourcev1.ResourceClaim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	claim = claim.DeepCopy()
	if claim.Name == "" {
		claim.Name = claim.GenerateName + "made" // the scheduler makes one for a Pod
	}
	claim.UID, claim.ResourceVersion = types.UID("uid-of-"+claim.Name), "1"
	return c.ResourceClaimInterface.Create(ctx, claim, options)
}

func (c timelyClaims) Update(ctx context.Context, claim *resourcev1.ResourceClaim, options metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.Update(ctx, claim, options)
}

func (c timelyClaims) UpdateStatus(ctx context.Context, claim *resourcev1.ResourceClaim, options metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.UpdateStatus(ctx, claim, options)
}

func (c timelyClaims) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
	subresources ...string) (*resourcev1.ResourceClaim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.Patch(ctx, name, kind, data, options, subresources...)
}

func (c timelyClaims) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.ResourceClaimInterface.Delete(ctx, name, options)
}
