// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import "github.com/lockstep-k8s/lockstep/internal/text"

// Kinds of objects in actions, beside the kinds that Pods need.
const (
	KindJob     = "Job"
	KindCommand = "Command"
)

// pluginPrefix is that of the keys of plugins in status.controlledResources.
const pluginPrefix = "plugin-"

// claimPrefix is that of the keys of claims in status.controlledResources.
const claimPrefix = "volume-pvc-"

// hashOnRecord is the key in status.controlledResources for the hash of the Job's immutable parts.
const hashOnRecord = "immutable-hash"

// KeyTakeOver is an annotation with which an administrator lets Lockstep run a Job that another controller has begun;
// its value is then "true". Lockstep never sets it, because a Volcano that seems to be stopped may act again.
const KeyTakeOver = "batch.lockstep.dev/take-over"

// Annotations that the core itself writes and reads.
const (
	// KeyMark is an annotation of Pods that are going to be deleted, either to be created again or because of a
	// rescale. Its value says why. The end of such a Pod triggers no policy of the Job.
	KeyMark = "batch.lockstep.dev/deleted-for"
	// KeyEvictedAt is an annotation of a Pod that replaces an evicted Pod while an action on the eviction is still to
	// come. Its value is the time of the eviction.
	KeyEvictedAt = "batch.lockstep.dev/predecessor-evicted-at"
	// KeyClaim is an annotation of a Command that is about to be executed. Its value is the version of the Job.
	KeyClaim = "batch.lockstep.dev/claimed-at-version"
	// KeyImmutableHash is an annotation of PodGroups: the hash of the Job's immutable parts, which the status has too.
	KeyImmutableHash = "batch.lockstep.dev/immutable-hash"
)

// Reasons of states and events.
const (
	// ReasonExecuteAction: an action is taken, or will be after its delay.
	ReasonExecuteAction = "ExecuteAction"
	// ReasonCommandIssued: a Command has asked for something.
	ReasonCommandIssued = "CommandIssued"
	// ReasonNoTarget: a restart of a part that the event does not have.
	ReasonNoTarget = "NoTarget"
	// ReasonForeignStatus: another controller has written the status.
	ReasonForeignStatus = "ForeignStatus"

	// ReasonEnoughPods: minAvailable Pods run or have ended.
	ReasonEnoughPods = "EnoughPods"
	// ReasonTooManyPending: the minimum does not hold any more.
	ReasonTooManyPending = "TooManyPending"
	// ReasonRestarted: Pods are made again.
	ReasonRestarted = "Restarted"
	// ReasonMaxRetry: there were too many restarts.
	ReasonMaxRetry = "MaxRetry"
	// ReasonMinSuccess: minSuccess Pods have succeeded.
	ReasonMinSuccess = "MinSuccess"
	// ReasonAllEnded: all Pods have ended, and enough of them well.
	ReasonAllEnded = "AllEnded"
	// ReasonTooFewSuccesses: all Pods have ended, and not enough of them well.
	ReasonTooFewSuccesses = "TooFewSuccesses"

	// ReasonRuntimeLimitExceeded: the Job ran for as long as its limit allows.
	ReasonRuntimeLimitExceeded = "RuntimeLimitExceeded"

	// Reasons why Pods are not created or placed.

	// ReasonInvalidJob: the spec makes no sense.
	ReasonInvalidJob = "InvalidJob"
	// ReasonSpecChanged: something in the spec has changed that must not.
	ReasonSpecChanged = "SpecChanged"
	// ReasonPVCError: a claim does not exist.
	ReasonPVCError = "PVCError"
	// ReasonPluginError: a plugin can't do what it is to do.
	ReasonPluginError = "PluginError"
	// ReasonFailedCreate: an object can't be created for now.
	ReasonFailedCreate = "FailedCreate"
	// ReasonWaiting: the Job waits for a Pod that is still there after its deletion.
	ReasonWaiting = "Waiting"
	// ReasonFailedUpdate: an object can't be changed for now.
	ReasonFailedUpdate = "FailedUpdate"
	// ReasonPodGroupPending: the gang can't be placed for now.
	ReasonPodGroupPending = "PodGroupPending"
	// ReasonTopologyUnmapped: no label of nodes stands for the tier of a topology.
	ReasonTopologyUnmapped = "TopologyUnmapped"
)

// cutReason bounds the reason of a phase.
func cutReason(reason string) string {
	const most = 256 // bytes
	return text.Cut(reason, most)
}
