// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"strings"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// gangLine is what the page of the line shows.
type gangLine struct {
	Namespace string
	Gangs     []gangInLine
	Others    int
}

// gangInLine is a gang that waits.
type gangInLine struct {
	answers.Waiting
	// Framework is the name of the Framework that the gang belongs to, derived from the PodGroup's name; empty if that
	// name has another form.
	Framework string
}

// line returns the page of the gangs that wait.
func (s *Server) line(_ context.Context, r request) (*opened, error) {
	namespace, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	return &opened{make: func(ctx context.Context) (*page, error) {
		snapshot, err := r.visitor.Reader.Snapshot(ctx, own(r, namespace))
		if err == nil {
			err = reading.Refused(snapshot)
		}
		if err != nil {
			return nil, err
		}
		answer := whatif.Order(snapshot, func(of dialect.Key) bool { return namespace == allNamespaces || of.Namespace == namespace })
		line := &gangLine{Namespace: namespace, Others: answer.Others}
		for _, gang := range answer.Gangs {
			framework, found := strings.CutSuffix(gang.Name, frameworkv1.AttemptName(""))
			if !found {
				framework = ""
			}
			line.Gangs = append(line.Gangs, gangInLine{gang, framework})
		}
		return &page{Title: "Queue", Tab: "line", Template: "line", Content: line, Unread: answer.Unknown, Namespace: namespace, Own: ownOfAll(r, namespace)}, nil
	}}, nil
}

// whyPage is what the page shows on why a Framework does not run.
type whyPage struct {
	Namespace, Name string
	answers.Why
}

// why returns the page on why a Framework does not run.
func (s *Server) why(_ context.Context, r request) (*opened, error) {
	reader, namespace, name := r.visitor.Reader, r.PathValue("namespace"), r.PathValue("name")
	return &opened{make: func(ctx context.Context) (*page, error) {
		named, err := reading.ParseName(namespace, "framework/"+name)
		if err != nil {
			return nil, err
		}
		answer, err := reader.Why(ctx, named)
		if err != nil {
			return nil, err
		}
		return &page{Title: "Why " + name + " waits", Tab: "jobs", Template: "why", Content: &whyPage{namespace, name, answer}, Unread: answer.Unknown, Namespace: namespace}, nil
	}}, nil
}
