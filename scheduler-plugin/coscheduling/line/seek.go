// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// A gang of which no member waits may be in line all the same: to have room sought for members that
// are still to come. Tenants decide how often there is reason to: by what their groups ask for, and by what
// their Pods take. So such turns have a back-off of their own, and debts of their own: each costs its
// namespace as much time as a turn does that was given up. The first turn after a member has come waits for
// neither, or a gang would lose its room while it does. It is charged all the same.

// The first back-off of a gang that seeks room, and the longest.
const (
	firstSeekBackOff   = time.Second
	longestSeekBackOff = 30 * time.Second
)

// seeks are the turns of a gang in which room was sought since a member came.
type seeks struct {
	count     int
	notBefore time.Time
}

// Seek has a gang be in line for nothing but room for members to come. Nobody waits of it.
func (l *Line) Seek(rank Rank, now time.Time) {
	g := l.gangs[rank.Key]
	if g == nil {
		g = &gang{}
		l.gangs[rank.Key] = g
	}
	switch {
	case g.state == seeking:
	case g.state == turning && g.seeksRoom:
		g.woken = false // it is in its turn for it, and nobody waits any more
	default:
		l.leave(g, now)
		g.state, g.seeksRoom = seeking, true
	}
	l.move(g, rank, now)
}

// Sought ends the turn of a gang in which room was sought for members to come, and which took so long.
func (l *Line) Sought(key dialect.Key, took time.Duration, now time.Time) {
	g := l.gangs[key]
	if g == nil {
		return
	}
	if now.Sub(g.seeks.notBefore) > longestSeekBackOff {
		g.seeks.count = 0 // the last one was long ago
	}
	g.seeks.count++
	g.seeks.notBefore = now.Add(backOff(g.seeks.count, firstSeekBackOff, longestSeekBackOff))
	l.seekDebts.Owe(key.Namespace, took, now)
	if g.state == turning && g.seeksRoom {
		woken := g.woken
		l.leave(g, now)
		if woken { // members have come in its turn that wait
			g.state = ready
		}
	}
	l.arrange(g, now)
}

// Came records that a member of a gang has come: room for the others is sought at once.
func (l *Line) Came(key dialect.Key, now time.Time) {
	if g := l.gangs[key]; g != nil {
		g.seeks = seeks{}
		l.arrange(g, now)
	}
}

// seekBarred is until when a gang that seeks room has no turn.
func (l *Line) seekBarred(g *gang) time.Time {
	if g.seeks.count == 0 {
		return g.doubtUntil
	}
	return times.Later(g.doubtUntil, times.Later(g.seeks.notBefore, l.seekDebts[g.rank.Key.Namespace]))
}
