// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// What the API server says where its status has no reason of its own for that.
const (
	exceededQuota   = "exceeded quota"
	noPriorityClass = "no PriorityClass with name"
)

// BlockReason is the Block.Reason of a creation that failed with an error that may be
// gone at the next try. An object that exists has to be somebody else's.
func BlockReason(err error) string {
	message := err.Error()
	switch {
	case apierrors.IsAlreadyExists(err):
		return frameworkv1.ReasonNameTaken
	case strings.Contains(message, exceededQuota):
		return frameworkv1.ReasonQuotaExceeded
	case strings.Contains(message, noPriorityClass):
		return frameworkv1.ReasonPriorityClassNotFound
	default:
		return frameworkv1.ReasonCreationRefused
	}
}

// PodCreationRefusal is how a task's attempt ends because of an error at the
// creation of its Pod. It returns nil for an error that may be gone at the next
// try: the creation is tried again. The first rule that fits decides.
func PodCreationRefusal(err error) *frameworkv1.CompletionStatus {
	message := err.Error()
	switch {
	case strings.Contains(message, "object provided is unrecognized"),
		// These are a 403, but not for good.
		strings.Contains(message, exceededQuota), strings.Contains(message, noPriorityClass):
		return nil
	case apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return podRefused(frameworkv1.CodePodCreationUnknownError, err)
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		if utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) {
			return podRefused(frameworkv1.CodePodCreationUnknownError, err)
		}
		return podRefused(frameworkv1.CodePodCreationPermanentError, err)
	default:
		return nil
	}
}

// PodTemplateRefusal is how a task's attempt ends because no Pod can be built
// from its template.
func PodTemplateRefusal(err error) *frameworkv1.CompletionStatus {
	return podRefused(frameworkv1.CodePodCreationPermanentError, err)
}

// podRefused has the error as JSON at the end of its diagnostics.
func podRefused(code frameworkv1.CompletionCode, err error) *frameworkv1.CompletionStatus {
	var detail any = struct {
		Message string `json:"message"`
	}{err.Error()}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		detail = status.Status()
	}
	data, marshalErr := json.Marshal(detail)
	if marshalErr != nil {
		data = []byte("{}")
	}
	status := Completion(code, "Failed to create Pod: "+string(data))
	return &status
}
