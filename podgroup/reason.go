// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import "strings"

const (
	// UnknownReason stands for a reason that has nothing to repeat.
	UnknownReason = "Unknown"
	// maxReasonLength is what Kubernetes allows the reason of a condition.
	maxReasonLength = 1024
)

// Reason is the reason of a PodGroup's condition, made fit to be that of a
// condition of Kubernetes: letters, digits, "_", "," and ":", a letter first and
// neither "," nor ":" last, at most 1024 of them, and at least one. What does not
// fit is left out. Reasons of lockstep-scheduler all fit; but others may write
// conditions too, and a reason that does not fit would have the API server refuse
// the whole status that repeats it.
func Reason(reason string) string {
	kept := strings.Map(func(r rune) rune {
		if isLetter(r) || r >= '0' && r <= '9' || strings.ContainsRune("_,:", r) {
			return r
		}
		return -1
	}, reason)
	kept = strings.TrimLeftFunc(kept, func(r rune) bool { return !isLetter(r) })
	kept = strings.TrimRight(kept[:min(len(kept), maxReasonLength)], ",:")
	if kept == "" {
		return UnknownReason
	}
	return kept
}

func isLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
