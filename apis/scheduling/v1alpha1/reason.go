// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

const (
	// ReasonUnknown is the reason of a condition without a legal reason.
	ReasonUnknown = "Unknown"

	maxReasonLength = 1024
)

// CleanReason makes any text a reason that a metav1.Condition may have: at most 1024 letters, digits, '_', ',' and
// ':', a letter first, and neither ',' nor ':' last. A legal reason stays as it is; of others, illegal characters are
// left out. A text that has nothing legal becomes ReasonUnknown.
//
// The schema of PodGroups asks for legal reasons, but one may be older than the
// schema.
func CleanReason(text string) string {
	reason := strings.Map(func(r rune) rune {
		if isLetter(r) || r >= '0' && r <= '9' || r == '_' || r == ',' || r == ':' {
			return r
		}
		return -1
	}, text)
	reason = strings.TrimLeftFunc(reason, func(r rune) bool { return !isLetter(r) })
	reason = strings.TrimRight(reason[:min(len(reason), maxReasonLength)], ",:")
	if reason == "" {
		return ReasonUnknown
	}
	return reason
}

func isLetter(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
