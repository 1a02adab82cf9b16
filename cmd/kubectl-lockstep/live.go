// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// How often a live view is drawn: at most after redrawLeast, when something has changed, and
// on a terminal after redrawMost, because ages have.
const (
	redrawLeast = 200 * time.Millisecond
	redrawMost  = time.Second
	// relistShare bounds what a live table costs: it is listed again after that many times as long as the last list took,
	// and not before relistLeast.
	relistShare = 10
	relistLeast = 2 * time.Second
)

// watchTable shows jobs until the user has seen enough.
func (o *getOptions) watchTable(ctx context.Context, c *cluster, names []string) error {
	screen := &screen{session: o.session}
	for first := true; ; first = false {
		begun := now()
		found, err := o.list(ctx, c, names)
		if err != nil {
			return err
		}
		if first {
			o.noteUnread(found)
		}
		if err := screen.showJobs(found.Rows, o.everywhere, o.output == "wide"); err != nil {
			return err
		}
		if err := pause(ctx, max(relistLeast, relistShare*now().Sub(begun))); err != nil {
			return err
		}
	}
}

// watchTree shows a Framework until it is deleted, or the user has seen enough.
func (s *session) watchTree(ctx context.Context, c *cluster, name string) error {
	// What can't be read, or is not there, is told at once.
	fw, err := c.framework(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := c.reader.Follow(ctx, c.namespace, name)
	screen := &screen{session: s}
	for {
		begun, o := followed.Begun(), followed.Objects()
		if o.Framework == nil && !begun {
			o.Framework = fw
		}
		if o.Framework == nil || o.Framework.UID != fw.UID {
			s.note("%s was deleted.", name)
			return nil
		}
		if err := screen.show(view.OfFramework(o, now())); err != nil {
			return err
		}
		if err := pause(ctx, redrawLeast); err != nil {
			return err
		}
		var tick <-chan time.Time
		if s.screen != nil {
			tick = time.After(redrawMost - redrawLeast)
		}
		select {
		case <-ctx.Done():
			return context.Canceled
		case <-followed.Changed():
		case <-tick:
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-time.After(d):
		return nil
	}
}

// screen is where a tree is drawn again and again.
type screen struct {
	*session
	// drawn is how many lines are there, of a terminal.
	drawn int
	// told are the lines that were last printed, where there is no terminal.
	told map[string]string
}

func (s *screen) show(tree *view.Tree) error {
	if s.screen == nil {
		return s.tell(terminal.Changes(tree))
	}
	return s.draw(s.style.Tree(tree, now()))
}

// draw puts a text in the place of the last one.
func (s *screen) draw(text string) error {
	columns, lines, err := term.GetSize(int(s.screen.Fd()))
	if err != nil || columns < 1 || lines < 2 {
		columns, lines = 80, 24
	}
	text, s.drawn = terminal.Redraw(text, s.drawn, columns, lines)
	_, err = io.WriteString(s.out, text)
	return err
}

// showJobs draws a table or, where there is no terminal, tells which of its rows have changed.
func (s *screen) showJobs(rows []view.Row, everywhere, wide bool) error {
	if s.screen != nil {
		return s.draw(s.style.Jobs(rows, now(), everywhere, wide))
	}
	changes := make([]terminal.Change, 0, len(rows))
	gone := maps.Clone(s.told)
	for i := range rows {
		change := terminal.JobChange(&rows[i])
		delete(gone, change.Of)
		changes = append(changes, change)
	}
	for _, of := range slices.Sorted(maps.Keys(gone)) {
		delete(s.told, of)
		if _, err := fmt.Fprintf(s.out, "%s %s was deleted\n", now().Format(time.TimeOnly), of); err != nil {
			return err
		}
	}
	return s.tell(changes)
}

// tell prints what has changed, a line each, without ages, so that the same is told once.
func (s *screen) tell(changes []terminal.Change) error {
	if s.told == nil {
		s.told = map[string]string{}
	}
	for _, line := range changes {
		if s.told[line.Of] == line.Text {
			continue
		}
		s.told[line.Of] = line.Text
		if _, err := fmt.Fprintf(s.out, "%s %s\n", now().Format(time.TimeOnly), line.Text); err != nil {
			return err
		}
	}
	return nil
}
