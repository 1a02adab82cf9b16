// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import "fmt"

// ReasonNameTooLong is the reason of the event that tells a group that no Pod can name it.
const ReasonNameTooLong = "NameTooLong"

// longestLabel is how many characters the value of a label has at most.
const longestLabel = 63

// Naming is what to tell a group that no Pod can name, as its name is too long for the value of a
// label. It is empty if Pods can, or the group was told.
func (g *Gang) Naming() string {
	if g.Group == nil || g.Group.IsImplied() || g.Record.ToldName || len(g.Key.Dialect.Labels()) == 0 || len(g.Key.Name) <= longestLabel {
		return ""
	}
	return fmt.Sprintf("the group can have no members: Pods name it by a label, the value of which has at most %d characters, and its name has %d",
		longestLabel, len(g.Key.Name))
}
