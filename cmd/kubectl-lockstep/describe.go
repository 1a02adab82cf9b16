// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/internal/view"
)

func newDescribe(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show a job once: tasks, conditions, events; of a Framework policies in words and history, too",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := s.tree(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			at := now()
			var out strings.Builder
			out.WriteString(s.style.Tree(tree, at))
			if len(tree.Policies) > 0 {
				out.WriteString(s.style.Policies(tree.Policies))
			}
			out.WriteString(s.style.Conditions(tree.Conditions, at))
			out.WriteString(s.style.Past(tree.History, at))
			out.WriteString(s.style.Events(tree.Events, at))
			_, err = fmt.Fprint(s.out, out.String())
			return err
		},
	}
}

func newHistory(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "history NAME",
		Short: "List the attempts of a Framework that are over: when, how and why they ended, what followed",
		Long: `List the attempts of a Framework that are over: when, how and why they ended, and what followed.
The attempts are in the Framework's status, so history works when Pods are gone. By default the
status keeps the last ten.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			fw, err := c.framework(cmd.Context(), args[0], "it keeps no history of attempts; `describe "+args[0]+"` shows its conditions and events")
			if err != nil {
				return err
			}
			tree := view.OfFramework(view.Objects{Framework: fw}, now())
			if len(tree.History) > 0 {
				_, err = fmt.Fprint(s.out, s.style.Past(tree.History, now()))
				return err
			}
			if tree.Attempt == nil || tree.Attempt.ID == 0 && !view.Final(tree.State) {
				s.note("No attempt of %s is over yet.", args[0])
			} else {
				s.note("The status of %s has no history: its attempts ended under a lockstep-controller that does not keep one.", args[0])
			}
			return nil
		},
	}
}

// tree reads a job and what belongs to it.
func (s *session) tree(ctx context.Context, name string) (*view.Tree, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	t, err := c.named(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case t.fw == nil:
		return c.reader.JobTree(ctx, t.job), nil
	}
	return view.OfFramework(c.reader.ObjectsOf(ctx, t.fw), now()), nil
}
