// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// refreshEvents is how often a page that is followed reads events.
const refreshEvents = 10 * time.Second

// frameworkPage is what the page of a Framework shows.
type frameworkPage struct {
	*view.Tree
	Timeline *timeline
	// Place is where the gang is; nil if no Pod is placed.
	Place *place
}

// framework returns the page of a Framework.
func (s *Server) framework(ctx context.Context, r request) (*opened, error) {
	reader, namespace, name := r.visitor.Reader, r.PathValue("namespace"), r.PathValue("name")
	first, err := reader.Objects(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	nodes := &nodeLabels{reader: reader}
	if r.live == nil {
		return &opened{make: func(ctx context.Context) (*page, error) { return s.frameworkNow(ctx, first, nodes), nil }}, nil
	}
	f := &following{reader: reader, first: &first, followed: reader.Follow(r.live, namespace, name), events: first.Events, eventsRead: s.options.Now()}
	return &opened{changed: f.followed.Changed(), make: func(ctx context.Context) (*page, error) {
		objects := f.objects(ctx, s.options.Now())
		if objects.Framework == nil {
			return &page{Title: name, Tab: "jobs", Template: "failure", Content: failure{Message: "Framework " + name + " was deleted."}, Still: true, Namespace: namespace}, nil
		}
		return s.frameworkNow(ctx, objects, nodes), nil
	}}, nil
}

// following is a Framework that a stream follows.
type following struct {
	reader   *reading.Reader
	followed *reading.Followed
	// first is what was read before the watches had begun. Nil when they have.
	first      *view.Objects
	events     []corev1.Event
	unread     []string
	eventsRead time.Time
}

// objects returns what is known now. The Framework is nil after its deletion.
func (f *following) objects(ctx context.Context, now time.Time) view.Objects {
	// In this order: what is read after the beginning is all.
	begun, o := f.followed.Begun(), f.followed.Objects()
	if f.first != nil && !begun {
		first := *f.first
		first.Unread = append(slices.Clone(first.Unread), o.Unread...)
		return first
	}
	f.first = nil
	if o.Framework == nil {
		return o
	}
	if now.Sub(f.eventsRead) >= refreshEvents {
		f.eventsRead, f.unread = now, nil
		events, err := f.reader.Events(ctx, o)
		if err != nil {
			f.unread = []string{reading.Unread("Events", err)}
		} else {
			f.events = events
		}
	}
	o.Events, o.Unread = f.events, append(o.Unread, f.unread...)
	return o
}

// frameworkNow returns the present page of a Framework.
func (s *Server) frameworkNow(ctx context.Context, o view.Objects, nodes *nodeLabels) *page {
	now := s.options.Now()
	tree := view.OfFramework(o, now)
	content := &frameworkPage{Tree: tree, Timeline: timelineOf(tree, now)}
	unread := tree.Unread
	var err error
	if content.Place, err = placeOf(ctx, o, nodes); err != nil {
		unread = append(unread, reading.Unread("Nodes", err))
	}
	return &page{Title: tree.Name, Tab: "jobs", Template: "framework", Content: content, Unread: unread, Namespace: tree.Namespace}
}

// tasksOfPage is how many tasks a page has.
const tasksOfPage = 200

// taskList is a part of the tasks of a role.
type taskList struct {
	Namespace, Name, Role, State string
	States                       []string
	Rows                         []view.Tasks
	Found                        int
	pages
}

// tasks returns the page of the tasks of a role, one by one.
func (s *Server) tasks(ctx context.Context, r request) (*opened, error) {
	namespace, name, query := r.PathValue("namespace"), r.PathValue("name"), r.URL.Query()
	role, state := query.Get("role"), query.Get("state")
	from, err := number(query, "from", 0, 1<<30)
	if err != nil {
		return nil, err
	}
	make := func(ctx context.Context) (*page, error) {
		fw, err := r.visitor.Reader.Framework(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		var unread []string
		pods, err := r.visitor.Reader.ShownPods(ctx, fw)
		if err != nil {
			unread = append(unread, reading.Unread("Pods", err))
		}
		role := role
		if role == "" && len(fw.Spec.TaskRoles) > 0 {
			role = fw.Spec.TaskRoles[0].Name
		}
		from := from
		rows, found, err := view.TasksOf(view.Objects{Framework: fw, Pods: pods}, role, state, from, tasksOfPage)
		if err == nil && len(rows) == 0 && found > 0 {
			from = onLastPage(from, tasksOfPage, found)
			rows, found, err = view.TasksOf(view.Objects{Framework: fw, Pods: pods}, role, state, from, tasksOfPage)
		}
		if err != nil {
			return nil, &Refusal{http.StatusBadGateway, "the tasks can't be shown: the compressed status of the Framework can't be read: " + err.Error()}
		}
		list := &taskList{Namespace: namespace, Name: name, Role: role, State: state, States: view.States(), Rows: rows, Found: found, pages: pagesOf(r.URL, from, tasksOfPage, found)}
		return &page{Title: cmp.Or(role, "Tasks") + " of " + name, Tab: "jobs", Template: "tasks", Content: list, Unread: unread, Namespace: namespace}, nil
	}
	return &opened{make: make}, nil
}
