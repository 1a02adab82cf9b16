// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// A live view is redrawn when something has changed, but at least redrawLeast after it was last drawn. On a terminal it
// is also redrawn every redrawMost, so that ages stay correct.
const (
	redrawLeast = 200 * time.Millisecond
	redrawMost  = time.Second
	// relistShare and relistLeast bound what a live table costs. The pause before the next list is relistShare times as
	// long as the last list took, and at least relistLeast.
	relistShare = 10
	relistLeast = 2 * time.Second
)

// watchTable shows jobs until the user interrupts it, or until all jobs that the user named are gone.
func (o *getOptions) watchTable(ctx context.Context, c *cluster, names []string) error {
	screen := &screen{session: o.session}
	var seen lookedAt
	for {
		begun := now()
		found, err := o.look(ctx, c, names, &seen)
		if ctx.Err() != nil {
			return context.Canceled
		}
		if err := seen.takes(found, err); err != nil {
			return err
		}
		view.Sort(seen.rows, o.sortBy)
		if err := screen.showJobs(seen.rows, seen.unread(), o.everywhere, o.output == "wide"); err != nil {
			return err
		}
		if len(names) > 0 && len(seen.rows) == 0 {
			if o.screen != nil {
				o.note("%s was deleted.", strings.Join(names, ", "))
			}
			return nil
		}
		if err := pause(ctx, max(relistLeast, relistShare*now().Sub(begun))); err != nil {
			return err
		}
	}
}

// look lists the watched jobs again. It is no error if a job that the user named is gone, as long as an earlier list
// had it.
func (o *getOptions) look(ctx context.Context, c *cluster, names []string, seen *lookedAt) (*reading.Jobs, error) {
	if len(names) == 0 {
		return o.list(ctx, c, nil)
	}
	found := &reading.Jobs{}
	for _, name := range names {
		err := c.addNamed(ctx, name, found)
		if err != nil && (!seen.once || !apierrors.IsNotFound(err) || reading.IsUnserved(err)) {
			return nil, err
		}
	}
	return found, nil
}

// lookedAt records what is known of jobs that are listed repeatedly. A job that can't be read for a while still counts
// as existing.
type lookedAt struct {
	// once says that all was read once.
	once bool
	// rows are the rows to show: for each kind, the rows of the last list in which the kind could be read. lacks has a
	// phrase about each kind that could not be read last.
	rows  []view.Row
	lacks []string
	// fails is why the last list could not be read, in the words of the first failed list in a row; refused reports
	// that the API server refused it.
	fails   string
	refused bool
}

// takes records the result of a list, and returns an error if the live view has to end. An error of the first list ends
// the view. Later, only two refusals in a row do, because an API server that has just started may refuse requests for a
// moment.
func (l *lookedAt) takes(found *reading.Jobs, err error) error {
	refusedBefore := l.refused
	l.refused = isRefusal(err)
	switch {
	case err == nil:
		l.once, l.fails = true, ""
		l.rows, l.lacks = withUnread(found, l.rows), found.Unread
		return nil
	case !l.once, refusedBefore && l.refused:
		return err
	case l.fails == "":
		l.fails = fmt.Sprintf("Can't show the latest state: %v", err)
	}
	return nil
}

// unread returns what can't be read now, without full stops.
func (l *lookedAt) unread() []string {
	if l.fails == "" {
		return l.lacks
	}
	return append(slices.Clone(l.lacks), l.fails)
}

// withUnread returns the rows that were found now. For kinds that could not be read, it adds the rows from before.
func withUnread(found *reading.Jobs, before []view.Row) []view.Row {
	if len(found.UnreadKinds) == 0 {
		return found.Rows
	}
	type job struct{ kind, namespace, name string }
	has := make(map[job]bool)
	for i := range found.Rows {
		has[job{found.Rows[i].Kind, found.Rows[i].Namespace, found.Rows[i].Name}] = true
	}
	rows := slices.Clone(found.Rows)
	for i := range before {
		row := &before[i]
		if slices.Contains(found.UnreadKinds, row.Kind) && !has[job{row.Kind, row.Namespace, row.Name}] {
			rows = append(rows, *row)
		}
	}
	reading.SortRows(rows)
	return rows
}

// watchTree shows a Framework until it is deleted, or the user has seen enough.
func (s *session) watchTree(ctx context.Context, c *cluster, name string) error {
	// Missing and unreadable objects are reported at once.
	fw, err := c.reader.Framework(ctx, c.namespace, name)
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
	// told are the last printed lines, without a terminal.
	told map[string]string
	// unread is what was last said to be unread, where there is no terminal.
	unread []string
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

// showJobs draws a table and the kinds that can't be read. Without a terminal it prints the changes instead.
func (s *screen) showJobs(rows []view.Row, unread []string, everywhere, wide bool) error {
	if s.screen != nil {
		text := s.style.Jobs(rows, now(), everywhere, wide)
		for _, what := range unread {
			text += s.style.Paint(terminal.Yellow, "! "+what+".") + "\n"
		}
		return s.draw(text)
	}
	for _, what := range unread {
		if !slices.Contains(s.unread, what) {
			s.note("%s.", what)
		}
	}
	s.unread = unread
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

// tell prints each change on a line, without ages, so that an unchanged state is not printed again.
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
