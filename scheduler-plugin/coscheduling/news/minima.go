// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import "fmt"

// ReasonMinimaDiffer: the members of a gang without a PodGroup ask for several minima.
const ReasonMinimaDiffer = "MinimaDiffer"

// MinimaDiffer is what to tell a gang whose members ask for several minima, empty if there is
// nothing to tell, or it was told.
func (g *Gang) MinimaDiffer() string {
	if len(g.Minima) < 2 || g.Record.ToldMinima {
		return ""
	}
	lowest, highest := g.Minima[0], g.Minima[len(g.Minima)-1]
	return fmt.Sprintf("the Pods of the gang %s say that from %d to %d of them are to be placed together: the highest counts", g.Key.Name, lowest, highest)
}
