// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/lockstep-k8s/lockstep/internal/buildinfo"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
)

// run runs the program, and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newSession(stdin, stdout, stderr).run(ctx, args)
}

// run carries a command out, and returns its exit code.
func (s *session) run(ctx context.Context, args []string) int {
	args = asCompletion(args)
	root := newCommand(s, programName(args[0]))
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var failed *failure
	if !errors.As(err, &failed) {
		failed = explain(err)
		// cobra has no type for it.
		if strings.HasPrefix(err.Error(), "unknown command ") {
			failed = &failure{code: exitMisuse, message: err.Error(), hint: "see " + root.CommandPath() + " --help"}
		}
	}
	// A stream that was cut off by Ctrl-C has nothing to say.
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	fmt.Fprintf(s.errOut, "%s: %s\n", programName(args[0]), terminal.Clean(failed.message))
	if failed.hint != "" {
		fmt.Fprintf(s.errOut, "hint: %s\n", terminal.Clean(failed.hint))
	}
	return failed.code
}

// programName returns the plugin's name, which is the program's file name without "kubectl-": "lockstep", or
// "framework" if the plugin is installed as kubectl-framework.
func programName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if noun, plugin := strings.CutPrefix(name, "kubectl-"); plugin {
		return noun
	}
	return "lockstep"
}

// newCommand returns the program with all its verbs.
func newCommand(s *session, name string) *cobra.Command {
	root := &cobra.Command{
		// Scripts of completion are for the program, and not for what kubectl calls it.
		Use:   "kubectl-" + name,
		Short: "See and steer Frameworks, and the other jobs that Lockstep runs",
		Long: `See and steer Frameworks, and the other jobs that Lockstep runs.

Exit codes: 0 it went well; 1 something failed; 2 the command is wrong; 3 there is no such
object; 4 you may not do that; 5 timed out; 6 the job has ended in a state
other than the requested one; 7 a gang has room only if others are evicted; 8 it has no room;
130 interrupted.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + name},
		Version:           buildinfo.Version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SuggestionsMinimumDistance = 1 // none of "fly" to why
	root.SetOut(s.out)
	root.SetErr(s.errOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return misuse(err.Error(), "see "+cmd.CommandPath()+" --help")
	})
	s.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(verbs(s)...)
	for _, verb := range root.Commands() {
		verb.Args = sayUsage(verb.Args)
		if verb.ValidArgsFunction == nil {
			verb.ValidArgsFunction = completeNames(s)
		}
	}
	return root
}

// verbs returns the subcommands.
func verbs(s *session) []*cobra.Command {
	return []*cobra.Command{
		newGet(s), newDescribe(s), newHistory(s),
		newStart(s), newStop(s), newRetry(s), newScale(s), newDelete(s), newWait(s),
		newLogs(s), newTop(s),
		newWhy(s),
		newSimulate(s),
		newLine(s),
		newDashboard(s),
		newVersion(s),
	}
}

// sayUsage reports wrong arguments with the usage.
func sayUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(cmd, args); err != nil {
			return misuse(err.Error(), "usage: "+cmd.UseLine())
		}
		return nil
	}
}

// newFlags are those of kubectl that choose a cluster, a user and a namespace.
func newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryQPS(50).WithDiscoveryBurst(100)
}
