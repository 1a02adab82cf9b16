// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
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
)

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
	seen := false
	for {
		o := followed.Objects()
		seen = seen || o.Framework != nil
		if !seen {
			o.Framework = fw // The watches are only about to begin.
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
		return s.tell(tree)
	}
	columns, lines, err := term.GetSize(int(s.screen.Fd()))
	if err != nil || columns < 1 || lines < 2 {
		columns, lines = 80, 24
	}
	text, drawn := terminal.Redraw(s.style.Tree(tree, now()), s.drawn, columns, lines)
	s.drawn = drawn
	_, err = io.WriteString(s.out, text)
	return err
}

// tell prints what has changed, a line each, without ages, so that the same is told once.
func (s *screen) tell(tree *view.Tree) error {
	if s.told == nil {
		s.told = map[string]string{}
	}
	for _, line := range terminal.Changes(tree) {
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
