// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// CompletionCode says how an attempt ended. Codes from -999 to 0 and from 200
// to 219 are reserved for the constants below; the exit code of a container
// and the codes of a controller's podFailureSpec make up the rest.
type CompletionCode int32

// Bounds of the reserved codes, both inclusive.
const (
	ReservedCodeMin          CompletionCode = -999
	ReservedCodeMax          CompletionCode = 0
	ReservedContainerCodeMin CompletionCode = 200
	ReservedContainerCodeMax CompletionCode = 219
)

// Predefined completion codes. Values and meanings up to -310 are those of
// FrameworkController's user manual, "Predefined CompletionCode"; -130, -131, -140,
// -240 and -320 are Lockstep's.
const (
	// CodeSucceeded: the Pod succeeded, or all tasks completed.
	CodeSucceeded CompletionCode = 0
	// CodeContainerTransientFailed: a container exited with 200.
	CodeContainerTransientFailed CompletionCode = 200
	// CodeContainerTransientConflictFailed: a container exited with 201.
	CodeContainerTransientConflictFailed CompletionCode = 201
	// CodeContainerPermanentFailed: a container exited with 210.
	CodeContainerPermanentFailed CompletionCode = 210
	// CodeConfigMapExternalDeleted: a client deleted the attempt's ConfigMap, or the Framework.
	CodeConfigMapExternalDeleted CompletionCode = -100
	// CodePodExternalDeleted: a client deleted the Pod: a user, an eviction, a preemption, a lost node.
	CodePodExternalDeleted CompletionCode = -101
	// CodeConfigMapCreationTimeout: the created ConfigMap was not seen in time.
	CodeConfigMapCreationTimeout CompletionCode = -110
	// CodePodCreationTimeout: the created Pod was not seen in time.
	CodePodCreationTimeout CompletionCode = -111
	// CodePodCreationTransientError marks a Pod with a creation that is tried again. Never stored.
	CodePodCreationTransientError CompletionCode = -120
	// CodePodGroupScheduleTimeout: the gang was not scheduled within
	// scheduleTimeoutSeconds.
	CodePodGroupScheduleTimeout CompletionCode = -130
	// CodePodGroupRecoveryTimeout: the gang has lost members, and there was no room
	// for their replacements within recoveryTimeoutSeconds.
	CodePodGroupRecoveryTimeout CompletionCode = -131
	// CodeAdmissionWithdrawn: the Framework is in a queue of Kueue, which gives the quota to others. Another attempt
	// follows at the next admission, and does not count.
	CodeAdmissionWithdrawn CompletionCode = -140
	// CodePodCreationPermanentError: the API server refuses the Pod for good.
	CodePodCreationPermanentError CompletionCode = -200
	// CodeStopFrameworkRequested: executionType is Stop.
	CodeStopFrameworkRequested CompletionCode = -210
	// CodeFrameworkAttemptCompletion: the attempt completed before the task did.
	CodeFrameworkAttemptCompletion CompletionCode = -220
	// CodeDeleteTaskRequested: the task was scaled down.
	CodeDeleteTaskRequested CompletionCode = -230
	// CodeRuntimeLimitExceeded: the attempt ran for as long as the limit allows.
	CodeRuntimeLimitExceeded CompletionCode = -240
	// CodePodFailedWithoutFailedContainer: the Pod failed, the containers did not.
	CodePodFailedWithoutFailedContainer CompletionCode = -300
	// CodePodCreationUnknownError: the API server refused the Pod, maybe not for
	// good.
	CodePodCreationUnknownError CompletionCode = -310
	// CodePodPreparingTimeout: the Pod did not run within preparingTimeoutSeconds of the role.
	CodePodPreparingTimeout CompletionCode = -320
)

// PhraseContainerUnrecognizedFailed names a container's exit code that nothing
// else names.
const PhraseContainerUnrecognizedFailed = "ContainerUnrecognizedFailed"
