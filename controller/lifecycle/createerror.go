// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// What the API server says where its status has no reason of its own for that.
const (
	exceededQuota   = "exceeded quota"
	noPriorityClass = "no PriorityClass with name"
)

// lacksQuota says whether a quota is exhausted, and lacksPriorityClass whether the
// PriorityClass does not exist. Both are a 403 that may be gone at the next try. An error
// of another kind may quote the same words from the Pod.
func lacksQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), exceededQuota)
}

func lacksPriorityClass(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), noPriorityClass)
}

// BlockReason is the Block.Reason of a creation that failed with an error that may be
// gone at the next try. An object that exists has to be somebody else's.
func BlockReason(err error) string {
	switch {
	case apierrors.IsAlreadyExists(err):
		return frameworkv1.ReasonNameTaken
	case lacksQuota(err):
		return frameworkv1.ReasonQuotaExceeded
	case lacksPriorityClass(err):
		return frameworkv1.ReasonPriorityClassNotFound
	default:
		return frameworkv1.ReasonCreationRefused
	}
}

// PodCreationRefusal is how a task's attempt ends because of an error at the
// creation of its Pod. It returns nil for an error that may be gone at the next
// try: the creation is tried again. The first rule that fits decides.
func PodCreationRefusal(err error) *frameworkv1.CompletionStatus {
	switch {
	case lacksQuota(err), lacksPriorityClass(err), isUnrecognized(err):
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

// isUnrecognized says whether the API server does not know what Pods are, for now.
func isUnrecognized(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "object provided is unrecognized")
}

// PodTemplateRefusal is how a task's attempt ends because no Pod can be built
// from its template.
func PodTemplateRefusal(err error) *frameworkv1.CompletionStatus {
	return podRefused(frameworkv1.CodePodCreationPermanentError, err)
}

// maxRefusal bounds the JSON of a refusal, in bytes. All tasks of a Framework may have
// one in their status.
const maxRefusal = 4 << 10

// podRefused has the error as JSON at the end of its diagnostics.
func podRefused(code frameworkv1.CompletionCode, err error) *frameworkv1.CompletionStatus {
	data := []byte("{}")
	// What JSON escapes takes up to six times its bytes.
	for most := maxRefusal; most > 0; most /= 2 {
		if short, marshalErr := json.Marshal(shortRefusal(err, most)); marshalErr == nil && len(short) <= maxRefusal {
			data = short
			break
		}
	}
	status := Completion(code, "Failed to create Pod: "+string(data))
	return &status
}

// shortRefusal is what the API server says in an error, or else its message, with all
// texts together cut to a number of bytes, or three more for each that was cut.
func shortRefusal(err error, most int) any {
	rest := most
	shorten := func(s string) string {
		s = text.Shorten(s, rest)
		rest = max(0, rest-len(s))
		return s
	}
	said := apierrors.APIStatus(nil)
	if !errors.As(err, &said) {
		return struct {
			Message string `json:"message"`
		}{shorten(err.Error())}
	}
	status := said.Status()
	short := metav1.Status{
		TypeMeta: status.TypeMeta,
		Status:   shorten(status.Status),
		Code:     status.Code,
		Reason:   metav1.StatusReason(shorten(string(status.Reason))),
	}
	var causes []metav1.StatusCause
	if details := status.Details; details != nil {
		short.Details = &metav1.StatusDetails{
			Name: shorten(details.Name), Group: shorten(details.Group), Kind: shorten(details.Kind),
			UID: details.UID, RetryAfterSeconds: details.RetryAfterSeconds,
		}
		causes = details.Causes
	}
	// The causes say once more what the message does, and have half of what is left.
	whole := rest
	rest = whole / 2
	for _, cause := range causes {
		if rest == 0 {
			break
		}
		short.Details.Causes = append(short.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(shorten(string(cause.Type))), Field: shorten(cause.Field), Message: shorten(cause.Message),
		})
	}
	rest += whole - whole/2
	short.Message = shorten(status.Message)
	return short
}
