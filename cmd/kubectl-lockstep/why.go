// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

func newWhy(s *session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Say why a Framework, a job or a gang is not running",
		Long: `Say in one line why a Framework, a job of Volcano or Kubeflow, or a PodGroup is not running, with the evidence
and the next step. Reasons are, for instance: not started, held back by Kueue, a quota refuses Pods, waits for the next
attempt, no room, containers do not start. The scheduler's own planner decides whether there is room, from what you may list.
The answer says what is not known.

A name is that of a Framework, else of a job, else of a PodGroup of any tool. KIND/NAME says which, such as
framework/train, vcjob/train, pytorchjob/train or podgroup/train.`,
		Example: `  kubectl lockstep why train
  kubectl lockstep why pytorchjob/train`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return s.why(cmd.Context(), args[0], output) },
	}
	addOutput(cmd, &output)
	return cmd
}

func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml")
}

// checkOutput is an error if a verb with answers can't write them so.
func checkOutput(output string) error {
	if output != "" && output != "json" && output != "yaml" {
		return misuse(fmt.Sprintf("there is no output %q", output), "-o takes json and yaml")
	}
	return nil
}

// connectToAsk checks the flags of a command that asks about gangs, and then connects to the cluster.
func (s *session) connectToAsk(output string) (*cluster, error) {
	if err := checkOutput(output); err != nil {
		return nil, err
	}
	return s.connect()
}

// print writes an answer as -o says, and says whether -o says something.
func (s *session) print(answer any, output string) (bool, error) {
	if output == "" {
		return false, nil
	}
	data, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return true, err
	}
	if output == "yaml" {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return true, err
		}
		return true, s.write(string(data))
	}
	return true, s.write(string(data) + "\n")
}

func (s *session) why(ctx context.Context, name, output string) error {
	c, err := s.connectToAsk(output)
	if err != nil {
		return err
	}
	named, err := reading.ParseName(c.namespace, name)
	if err != nil {
		return err
	}
	answer, err := c.reader.Why(ctx, named)
	if err != nil {
		return err
	}
	if done, err := s.print(answer, output); done {
		return err
	}
	writeWhy(s.out, &answer)
	return nil
}

// writeWhy writes an answer for people.
func writeWhy(w io.Writer, answer *answers.Why) {
	line(w, "%s: %s", answer.Reason, answer.Message)
	for _, evidence := range answer.Evidence {
		line(w, "  %s", evidence)
	}
	alike, rest := tasksAlike(answer)
	for _, tasks := range alike {
		line(w, "  %s", tasks)
	}
	if rest += answer.MoreTasks; rest > 0 {
		line(w, "  and %s", text.Counted(rest, "more task"))
	}
	if answer.Next != "" {
		line(w, "next: %s", answer.Next)
	}
	writeUnknown(w, answer.Unknown)
}

// shownTasks bounds how many lines people are shown of tasks.
const shownTasks = 20

// tasksAlike returns a line for each group of tasks that wait for the same reason, without reasons that the answer
// gives already. `rest` is the number of tasks that no line mentions.
func tasksAlike(answer *answers.Why) (lines []string, rest int) {
	type alike struct{ reason, message string }
	var order []alike
	of := make(map[alike][]string)
	for _, task := range answer.Tasks {
		key := alike{task.Reason, task.Message}
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], task.Pod)
	}
	for i, key := range order {
		pods := of[key]
		if i >= shownTasks {
			rest += len(pods)
			continue
		}
		line := pods[0]
		if more := len(pods) - 1; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		if line += ": " + key.reason; key.message != "" && !strings.Contains(answer.Message, key.message) {
			line += " " + key.message
		}
		lines = append(lines, line)
	}
	return lines, rest
}

func writeUnknown(w io.Writer, unknown []string) {
	for _, what := range unknown {
		line(w, "not known: %s", what)
	}
}

// line writes a line without what a terminal would take for a command.
func line(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, terminal.Clean(fmt.Sprintf(format, args...)))
}
