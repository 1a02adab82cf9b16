// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// errTemplate is why no Pod can be built from a template.
type errTemplate struct{ error }

// PodRefusal returns how a task's attempt ends because of an error at the creation of its Pod; nil if another try may
// succeed.
func PodRefusal(err error) *frameworkv1.CompletionStatus {
	var template errTemplate
	switch {
	case errors.As(err, &template):
		return podRefused(frameworkv1.CodePodCreationPermanentError, template.error)
	case plan.RefusalOf(err) == plan.RefusedForNow:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return podRefused(frameworkv1.CodePodCreationPermanentError, err)
	default:
		return podRefused(frameworkv1.CodePodCreationUnknownError, err)
	}
}

// maxRefusal limits the JSON of a refusal, in bytes. The status may have such a text for each task of the Framework.
const maxRefusal = 4 << 10

// podRefused has the error as JSON at the end of the diagnostics.
func podRefused(code frameworkv1.CompletionCode, err error) *frameworkv1.CompletionStatus {
	data := []byte("{}")
	// Escapes of JSON take up to six times as many bytes.
	for most := maxRefusal; most > 0; most /= 2 {
		if short, marshalErr := json.Marshal(shortRefusal(err, most)); marshalErr == nil && len(short) <= maxRefusal {
			data = short
			break
		}
	}
	status := Completion(code, "Failed to create Pod: "+string(data))
	return &status
}

// shortRefusal returns the API server's status in an error, or else the error's message. All texts in the result
// together have at most `most` bytes, plus three for each text that was cut.
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
