// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
)

// followInterval is the time between two looks for more of a log.
const followInterval = 200 * time.Millisecond

func newLogs() *cobra.Command {
	var dir string
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Print the log of a component",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			layout, err := layoutOf(dir)
			if err != nil {
				return err
			}
			return printLog(cmd.Context(), cmd.OutOrStdout(), layout, args[0], follow)
		},
	}
	dirFlag(cmd, &dir)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing what is added to the log")
	return cmd
}

func printLog(ctx context.Context, out io.Writer, layout cluster.Layout, component string, follow bool) error {
	names, err := logNames(layout)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != component {
			continue
		}
		f, err := os.Open(layout.Log(name))
		if err != nil {
			return fmt.Errorf("opening the log: %w", err)
		}
		defer f.Close()
		return copyLog(ctx, out, f, follow)
	}
	return fmt.Errorf("no component %q in %s: want one of %s", component, layout.Dir, strings.Join(names, ", "))
}

func copyLog(ctx context.Context, out io.Writer, f *os.File, follow bool) error {
	for {
		if _, err := io.Copy(out, f); err != nil {
			return fmt.Errorf("printing the log: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil // interrupting is how following ends
		case <-time.After(followInterval):
		}
	}
}

// logNames lists the components that have a log.
func logNames(layout cluster.Layout) ([]string, error) {
	files, err := filepath.Glob(layout.Log("*"))
	if err != nil {
		return nil, fmt.Errorf("listing logs: %w", err)
	}
	if len(files) == 0 {
		return nil, errors.New("no cluster in " + layout.Dir + ": start one with `lockstep-local up`")
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".log"))
	}
	return names, nil
}
