// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// phraseAndType returns the phrase and the type of a predefined completion code, as in the table "Predefined
// CompletionCode" of FrameworkController's manual. The codes -130, -131, -140, -240 and -320 are Lockstep's.
func phraseAndType(code frameworkv1.CompletionCode) (string, frameworkv1.CompletionType) {
	const (
		transient = frameworkv1.AttributeTransient
		permanent = frameworkv1.AttributePermanent
		conflict  = frameworkv1.AttributeConflict
	)
	failed := func(attributes ...frameworkv1.CompletionTypeAttribute) frameworkv1.CompletionType {
		if attributes == nil {
			attributes = []frameworkv1.CompletionTypeAttribute{}
		}
		return frameworkv1.CompletionType{Name: frameworkv1.CompletionTypeFailed, Attributes: attributes}
	}
	switch code {
	case frameworkv1.CodeSucceeded:
		return "Succeeded", frameworkv1.CompletionType{
			Name:       frameworkv1.CompletionTypeSucceeded,
			Attributes: []frameworkv1.CompletionTypeAttribute{},
		}
	case frameworkv1.CodeContainerTransientFailed:
		return "ContainerTransientFailed", failed(transient)
	case frameworkv1.CodeContainerTransientConflictFailed:
		return "ContainerTransientConflictFailed", failed(transient, conflict)
	case frameworkv1.CodeContainerPermanentFailed:
		return "ContainerPermanentFailed", failed(permanent)
	case frameworkv1.CodeConfigMapExternalDeleted:
		return "ConfigMapExternalDeleted", failed(transient)
	case frameworkv1.CodePodExternalDeleted:
		return "PodExternalDeleted", failed(transient)
	case frameworkv1.CodeConfigMapCreationTimeout:
		return "ConfigMapLocalCacheCreationTimeout", failed(transient)
	case frameworkv1.CodePodCreationTimeout:
		return "PodLocalCacheCreationTimeout", failed(transient)
	case frameworkv1.CodePodCreationTransientError:
		return "PodCreationTransientError", failed(transient)
	case frameworkv1.CodePodGroupScheduleTimeout:
		return "PodGroupScheduleTimeout", failed(transient, conflict)
	case frameworkv1.CodePodGroupRecoveryTimeout:
		return "PodGroupRecoveryTimeout", failed(transient, conflict)
	case frameworkv1.CodeAdmissionWithdrawn:
		return "AdmissionWithdrawn", failed(transient, conflict)
	case frameworkv1.CodePodCreationPermanentError:
		return "PodCreationPermanentError", failed(permanent)
	case frameworkv1.CodeStopFrameworkRequested:
		return "StopFrameworkRequested", failed(permanent)
	case frameworkv1.CodeFrameworkAttemptCompletion:
		return "FrameworkAttemptCompletion", failed(permanent)
	case frameworkv1.CodeDeleteTaskRequested:
		return "DeleteTaskRequested", failed(permanent)
	case frameworkv1.CodeRuntimeLimitExceeded:
		return "RuntimeLimitExceeded", failed(permanent)
	case frameworkv1.CodePodFailedWithoutFailedContainer:
		return "PodFailedWithoutFailedContainer", failed()
	case frameworkv1.CodePodCreationUnknownError:
		return "PodCreationUnknownError", failed()
	case frameworkv1.CodePodPreparingTimeout:
		return "PodPreparingTimeout", failed()
	default:
		return frameworkv1.PhraseContainerUnrecognizedFailed, failed()
	}
}

// Completion returns the completion status of a predefined code.
func Completion(code frameworkv1.CompletionCode, diagnostics string) frameworkv1.CompletionStatus {
	phrase, completionType := phraseAndType(code)
	return frameworkv1.CompletionStatus{Code: code, Phrase: phrase, Type: completionType, Diagnostics: diagnostics}
}

func taskCompletion(code frameworkv1.CompletionCode, diagnostics string) *frameworkv1.TaskAttemptCompletionStatus {
	return &frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: Completion(code, diagnostics)}
}

func attemptCompletion(code frameworkv1.CompletionCode, diagnostics string) *frameworkv1.FrameworkAttemptCompletionStatus {
	return &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: Completion(code, diagnostics)}
}

func succeeded(status frameworkv1.CompletionStatus) bool {
	return status.Type.Name == frameworkv1.CompletionTypeSucceeded
}
