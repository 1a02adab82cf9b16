// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completionPrefix is how the names of completion programs begin. kubectl completes the arguments of a plugin by
// running kubectl_complete-lockstep, which is a link to this program.
const completionPrefix = "kubectl_complete-"

// manyNames are the verbs that take several names.
var manyNames = []string{"get", "start", "stop", "retry", "delete"}

// asCompletion converts a call under the completion's name to a call of the program.
func asCompletion(args []string) []string {
	name := args[0][strings.LastIndexByte(args[0], '/')+1:]
	if noun, completion := strings.CutPrefix(name, completionPrefix); completion {
		return append([]string{"kubectl-" + noun, cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args
}

// completeNames completes the names of jobs. completeNames returns none if the cluster does not answer soon.
func completeNames(s *session) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 && !slices.Contains(manyNames, cmd.Name()) {
			return s.completeRoles(cmd, args, begun), none | cobra.ShellCompDirectiveNoSpace
		}
		c, err := s.connect()
		if err != nil {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
		defer cancel()
		list, err := c.reader.Rows(ctx, c.namespace, metav1.ListOptions{})
		if err != nil {
			return nil, none
		}
		var names []string
		for i := range list.Rows {
			if name := list.Rows[i].Name; strings.HasPrefix(name, begun) && !slices.Contains(args, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names, none
	}
}

// completeRoles completes the roles of a job for logs and scale.
func (s *session) completeRoles(cmd *cobra.Command, args []string, begun string) []string {
	end, takes := map[string]string{"logs": "", "scale": "="}[cmd.Name()]
	c, err := s.connect()
	if err != nil || !takes {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 3*time.Second)
	defer cancel()
	t, err := c.named(ctx, args[0])
	if err != nil {
		return nil
	}
	var roles []string
	for _, role := range rolesOf(t) {
		name := role.name
		if role.named == "" {
			name = strings.ToLower(name)
		}
		if strings.HasPrefix(name, begun) {
			roles = append(roles, name+end)
		}
	}
	return roles
}
