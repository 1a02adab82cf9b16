// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/terminal"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// write is what verbs that change something have in common.
type write struct {
	*session
	selection
	// dryRun is none, client or server, as with kubectl.
	dryRun string
}

func (w *write) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.dryRun, "dry-run", "none", "none; client: say what would be done; server: have the API server check it, and change nothing")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "client"
}

func (w *write) check() error {
	switch w.dryRun {
	case "none", "client", "server":
		return nil
	default:
		return misuse(fmt.Sprintf("--dry-run=%s is none of none, client and server", w.dryRun), "")
	}
}

// options are the API server's word for the dry run.
func (w *write) options() []string {
	if w.dryRun == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// done says what was done, as kubectl does.
func (w *write) done(fw *frameworkv1.Framework, what string) {
	suffix := ""
	if w.everywhere {
		suffix = " in " + fw.Namespace
	}
	switch w.dryRun {
	case "client":
		suffix += " (dry run)"
	case "server":
		suffix += " (server dry run)"
	}
	fmt.Fprintf(w.out, "framework/%s %s%s\n", terminal.Clean(fw.Name), what, suffix)
}

// patch changes a Framework, unless it is a dry run of the client alone.
func (w *write) patch(ctx context.Context, c *cluster, fw *frameworkv1.Framework, kind types.PatchType, patch any) error {
	if w.dryRun == "client" {
		return nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(fw.Namespace).Patch(ctx, fw.Name, kind, data, metav1.PatchOptions{DryRun: w.options(), FieldManager: "kubectl-lockstep"})
	return err
}

// connect makes the clients, if the flags are right.
func (w *write) connect(names []string) (*cluster, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := w.selection.check(names); err != nil {
		return nil, err
	}
	return w.session.connect()
}

// execution is the verb that sets executionType. Of those that a selector chooses, it leaves alone such as may not be set.
func execution(s *session, verb, short string, to frameworkv1.ExecutionType, done string, may func(*frameworkv1.Framework) error) *cobra.Command {
	w := &write{session: s}
	cmd := &cobra.Command{
		Use: verb + " (NAME... | -l SELECTOR)", Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.connect(args)
			if err != nil {
				return err
			}
			return w.each(cmd.Context(), c, args, func(fw *frameworkv1.Framework) error {
				if fw.Spec.ExecutionType == to {
					w.note("%s is %s already.", fw.Name, done)
					return nil
				}
				if err := may(fw); err != nil {
					if w.selector == "" {
						return err
					}
					w.note("%v.", err)
					return nil
				}
				// The UID keeps another Framework of the name, made just now, from being changed.
				change := map[string]any{"metadata": map[string]any{"uid": fw.UID}, "spec": map[string]any{"executionType": to}}
				if err := w.patch(cmd.Context(), c, fw, types.MergePatchType, change); err != nil {
					return err
				}
				w.done(fw, done)
				return nil
			})
		},
	}
	w.addFlags(cmd)
	w.selection.addFlags(cmd)
	return cmd
}

func newStart(s *session) *cobra.Command {
	return execution(s, "start", "Start a Framework that was made with executionType Create", frameworkv1.ExecutionStart, "started", func(fw *frameworkv1.Framework) error {
		if fw.Spec.ExecutionType == frameworkv1.ExecutionStop {
			return &failure{code: exitFailed, message: fw.Name + " was stopped, and a Framework that was stopped is never started again", hint: "`retry` makes it anew once it has ended"}
		}
		return nil
	})
}

func newStop(s *session) *cobra.Command {
	return execution(s, "stop", "End a Framework with code -210; its object stays as a record", frameworkv1.ExecutionStop, "stopped", func(fw *frameworkv1.Framework) error {
		if state := view.FrameworkState(fw); view.Final(state) {
			return &failure{code: exitFailed, message: fmt.Sprintf("%s has ended already: %s", fw.Name, state), hint: "`delete` removes it"}
		}
		return nil
	})
}

func newScale(s *session) *cobra.Command {
	w := &write{session: s}
	cmd := &cobra.Command{
		Use:     "scale NAME ROLE=N...",
		Short:   "Set the number of tasks of roles, all at once",
		Example: "  kubectl lockstep scale training worker=8 ps=2",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			scale, err := parseScale(args[1:])
			if err != nil {
				return err
			}
			c, err := w.connect(args[:1])
			if err != nil {
				return err
			}
			fw, err := c.framework(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if state := view.FrameworkState(fw); view.Final(state) {
				return &failure{code: exitFailed, message: fmt.Sprintf("%s has ended: %s; it is not rescaled any more", fw.Name, state), hint: "`retry` makes it anew"}
			}
			patch, err := scalePatch(fw, scale)
			if err != nil {
				return err
			}
			if err := w.patch(cmd.Context(), c, fw, types.JSONPatchType, patch); err != nil {
				return err
			}
			w.done(fw, "scaled")
			return nil
		},
	}
	w.addFlags(cmd)
	return cmd
}

// parseScale reads ROLE=N.
func parseScale(args []string) (map[string]int32, error) {
	scale := map[string]int32{}
	for _, arg := range args {
		role, number, found := strings.Cut(arg, "=")
		n, err := strconv.ParseInt(number, 10, 32)
		if !found || role == "" || err != nil || n < 0 || n > frameworkv1.MaxTasks {
			return nil, misuse(fmt.Sprintf("%q is not ROLE=N with N from 0 to %d", arg, frameworkv1.MaxTasks), "for example worker=8")
		}
		if _, twice := scale[role]; twice {
			return nil, misuse(fmt.Sprintf("role %s is there twice", role), "")
		}
		scale[role] = int32(n)
	}
	return scale, nil
}

// scalePatch changes the numbers, and nothing if the roles have changed places meanwhile.
func scalePatch(fw *frameworkv1.Framework, scale map[string]int32) ([]map[string]any, error) {
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": fw.UID}}
	var roles []string
	for i, role := range fw.Spec.TaskRoles {
		roles = append(roles, role.Name)
		n, wanted := scale[role.Name]
		if !wanted {
			continue
		}
		delete(scale, role.Name)
		at := fmt.Sprintf("/spec/taskRoles/%d/", i)
		patch = append(patch,
			map[string]any{"op": "test", "path": at + "name", "value": role.Name},
			map[string]any{"op": "add", "path": at + "taskNumber", "value": n})
	}
	for role := range scale {
		return nil, &failure{code: exitNotFound, message: fmt.Sprintf("%s has no role %s", fw.Name, role), hint: "its roles are " + strings.Join(roles, ", ")}
	}
	return patch, nil
}
