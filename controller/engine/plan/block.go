// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Block is a Create or an Update that is refused for now and will be tried again. A block lasts until a try succeeds,
// or the action is not planned any more.
type Block struct {
	// Verb is the action's: Create or Update.
	Verb Verb
	// Kind and Group are those of the action. If there is a Group, the Block holds for the whole group.
	Kind, Group string
	// Name is the object with the try that showed the block.
	Name string
	// Reason is one of the reasons below.
	Reason string
	// Message says, for people, what is refused and why.
	Message string
}

// These are the reasons that Block.Reason may have. They are API: the condition TasksBlocked of a Framework has these
// reasons, and no kind of owner has others. BlockReason returns all but ReasonUnknownFields.
const (
	// ReasonNameTaken: another owner has an object of the name.
	ReasonNameTaken = frameworkv1.ReasonNameTaken
	// ReasonQuotaExceeded: a ResourceQuota is exhausted.
	ReasonQuotaExceeded = frameworkv1.ReasonQuotaExceeded
	// ReasonPriorityClassNotFound: the object names a PriorityClass that does not exist.
	ReasonPriorityClassNotFound = frameworkv1.ReasonPriorityClassNotFound
	// ReasonUnknownFields: the Pod template has fields that the API server does not know, and the configuration refuses
	// those.
	ReasonUnknownFields = frameworkv1.ReasonUnknownFields
	// ReasonCreationRefused: anything else.
	ReasonCreationRefused = frameworkv1.ReasonCreationRefused
)

// These are words by which the API server's messages are recognized where its answer has no reason for the case.
const (
	exceededQuota   = "exceeded quota"
	noPriorityClass = "no PriorityClass with name"
)

// saidOfOthers are words of a 403 that is not about the Pod, but about the rights of its creator, about an object
// that may yet be created, or about the API server itself.
var saidOfOthers = []string{
	exceededQuota,
	noPriorityClass,
	` cannot create resource "pods"`,       // the right is missing, or not yet known
	"cannot set an ownerRef on a resource", // so is that to the owner
	"cannot set blockOwnerDeletion",        // the same
	"error looking up service account",     // it is not there yet, or was not found out about
	"pod rejected: RuntimeClass ",          // the same
	"status unknown for quota",             // the quota is so new that nothing was counted
	"insufficient quota to",                // there has to be one, and there is none
	"error enforcing limit ranges",         // they could not be read
	"not yet ready to handle request",      // the API server has just begun
}

// LacksQuota reports whether a quota is exhausted. The error has the code 403, and the next try may succeed. LacksQuota
// checks the code too, because another error may quote the same words from the object.
func LacksQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), exceededQuota)
}

// LacksPriorityClass is described at LacksQuota.
func LacksPriorityClass(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), noPriorityClass)
}

// BlockReason returns the value of Block.Reason for a creation or update that has failed with err and will be tried
// again. If err is AlreadyExists, the caller has checked that the existing object belongs to another owner.
func BlockReason(err error) string {
	switch {
	case apierrors.IsAlreadyExists(err):
		return ReasonNameTaken
	case LacksQuota(err):
		return ReasonQuotaExceeded
	case LacksPriorityClass(err):
		return ReasonPriorityClassNotFound
	default:
		return ReasonCreationRefused
	}
}

// Refusal classifies an error at the creation of a Pod or a Service.
type Refusal int

const (
	// RefusedForNow: nothing. The creation is tried again.
	RefusedForNow Refusal = iota
	// RefusedByOthers: Pod Security, a LimitRange, an admission webhook or an admission policy refuses the object until
	// somebody changes these. A Framework ends the attempt, since it has retries. Other jobs have none, and wait.
	RefusedByOthers
	// RefusedAsWrong: the API server itself finds the object wrong, or too large.
	RefusedAsWrong
)

// RefusalOf classifies an error at the creation of a Pod or a Service, for all kinds of jobs. The API server marks
// most cases by a code. RefusalOf recognizes the others by the text of the error; TestTheWordsAreThoseOfKubernetes
// compares these texts with Kubernetes' source.
func RefusalOf(err error) Refusal {
	switch {
	case !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsRequestEntityTooLargeError(err),
		isAboutOthers(err), isUnrecognized(err), isOfProxy(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return RefusedForNow
	case apierrors.IsForbidden(err), isDenied(err):
		return RefusedByOthers
	default:
		return RefusedAsWrong
	}
}

// isAboutOthers reports whether something is forbidden for another reason than the Pod.
func isAboutOthers(err error) bool {
	said := err.Error()
	return apierrors.IsForbidden(err) && slices.ContainsFunc(saidOfOthers, func(words string) bool { return strings.Contains(said, words) })
}

// isDenied reports whether an admission webhook or an admission policy has refused the object. isDenied checks the
// text, because the codes vary: a policy without a reason, or with an expression that fails, answers 422, as for an
// invalid object, and a webhook without a code answers 400. An invalid object counts as denied, too, if the error
// quotes a value with the words of a denial.
func isDenied(err error) bool {
	said := err.Error()
	return strings.Contains(said, "admission webhook ") && strings.Contains(said, " denied the request") ||
		strings.Contains(said, "olicy '") && strings.Contains(said, " denied request: ")
}

// isOfProxy reports whether a proxy between the controller and the API server has sent an error, which then lacks the
// API server's explanation. An object that is too large for the proxy is not such a case, because another try does not
// help.
func isOfProxy(err error) bool {
	return apierrors.IsUnexpectedServerError(err) && !apierrors.IsRequestEntityTooLargeError(err)
}

// isUnrecognized reports whether the API server does not know what Pods are, for now.
func isUnrecognized(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "object provided is unrecognized")
}
