// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
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
		return misuse(fmt.Sprintf("--dry-run is %q, and must be none, client or server", w.dryRun), "")
	}
}

// options returns the API server's word for the dry run.
func (w *write) options() []string {
	if w.dryRun == "server" {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// done says what was done, as kubectl does.
func (w *write) done(t target, what string) {
	suffix := ""
	if w.everywhere {
		suffix = " in " + t.object().GetNamespace()
	}
	switch w.dryRun {
	case "client":
		suffix += " (dry run)"
	case "server":
		suffix += " (server dry run)"
	}
	fmt.Fprintf(w.out, "%s %s%s\n", terminal.Clean(t.String()), what, suffix)
}

// patch changes an object, unless it is a dry run of the client alone.
func (w *write) patch(ctx context.Context, c *cluster, t target, kind types.PatchType, patch any) error {
	if w.dryRun == "client" {
		return nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{DryRun: w.options(), FieldManager: "kubectl-lockstep"}
	if t.fw != nil {
		_, err = c.reader.Lockstep.FrameworkcontrollerV1().Frameworks(t.fw.Namespace).Patch(ctx, t.fw.Name, kind, data, options)
	} else {
		_, err = c.reader.Dynamic.Resource(t.job.Resource).Namespace(t.job.Namespace).Patch(ctx, t.job.Name, kind, data, options)
	}
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

// steering returns a command that starts or stops jobs. If a selector chose the jobs, a job that refuses is no failure.
func steering(s *session, verb, short, long string, do func(ctx context.Context, w *write, c *cluster, t target) error) *cobra.Command {
	w := &write{session: s}
	cmd := &cobra.Command{
		Use: verb + " (NAME... | -l SELECTOR)", Short: short, Long: long,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := w.connect(args)
			if err != nil {
				return err
			}
			return w.each(cmd.Context(), c, args, func(t target) error {
				err := do(cmd.Context(), w, c, t)
				var refused *failure
				if w.selector != "" && errors.As(err, &refused) && refused.code == exitFailed {
					w.note("%v.", err)
					return nil
				}
				return err
			})
		},
	}
	w.addFlags(cmd)
	w.selection.addFlags(cmd)
	return cmd
}

func newStart(s *session) *cobra.Command {
	const long = `Start a Framework that was created with executionType Create; resume a job of Kubeflow that is suspended, by
spec.runPolicy.suspend, or a Job of Volcano that was aborted, by a Command with the action ResumeJob.`
	return steering(s, "start", "Start a Framework that was created with executionType Create, or resume a job", long, func(ctx context.Context, w *write, c *cluster, t target) error {
		switch {
		case t.fw != nil && t.fw.Spec.ExecutionType == frameworkv1.ExecutionStop:
			return &failure{code: exitFailed, message: t.fw.Name + " was stopped, and a Framework that was stopped is never started again", hint: "`retry` recreates it once it has ended"}
		case t.fw != nil:
			return w.execute(ctx, c, t, frameworkv1.ExecutionStart, "started")
		case t.job.IsPodGroup():
			return unfit(t, "start the job that the PodGroup is for")
		case t.isVolcano():
			if state := t.state(); state != "Aborted" {
				return &failure{code: exitFailed, message: fmt.Sprintf("%s is %s: only a Job that is Aborted can be resumed", t, state)}
			}
			return w.command(ctx, c, t, busv1alpha1.ActionResumeJob, "resumed")
		default:
			return w.suspend(ctx, c, t, false, "resumed")
		}
	})
}

func newStop(s *session) *cobra.Command {
	const long = `End a Framework with code -210, for good; its object stays as a record. Other jobs lose their Pods, and 'start' resumes
them: a job of Kubeflow is suspended, by spec.runPolicy.suspend, and a Job of Volcano aborted, by a Command.`
	return steering(s, "stop", "End a Framework with code -210, or suspend a job; its object stays", long, func(ctx context.Context, w *write, c *cluster, t target) error {
		state := t.state()
		switch {
		case t.fw != nil && view.Final(state) && t.fw.Spec.ExecutionType != frameworkv1.ExecutionStop, t.fw == nil && !t.job.IsPodGroup() && view.JobFinal(state):
			return &failure{code: exitFailed, message: fmt.Sprintf("%s has ended already: %s", t.object().GetName(), state), hint: "`delete` removes it"}
		case t.fw != nil:
			return w.execute(ctx, c, t, frameworkv1.ExecutionStop, "stopped")
		case t.job.IsPodGroup():
			return unfit(t, "stop the job that the PodGroup is for, or delete its Pods")
		case t.isVolcano():
			return w.command(ctx, c, t, busv1alpha1.ActionAbortJob, "aborted")
		default:
			return w.suspend(ctx, c, t, true, "suspended")
		}
	})
}

// execute sets executionType.
func (w *write) execute(ctx context.Context, c *cluster, t target, to frameworkv1.ExecutionType, done string) error {
	if t.fw.Spec.ExecutionType == to {
		w.note("%s is %s already.", t.fw.Name, done)
		return nil
	}
	// The UID keeps another Framework of the name, made just now, from being changed.
	change := map[string]any{"metadata": map[string]any{"uid": t.fw.UID}, "spec": map[string]any{"executionType": to}}
	if err := w.patch(ctx, c, t, types.MergePatchType, change); err != nil {
		return err
	}
	w.done(t, done)
	return nil
}

// suspend suspends or resumes a job of Kubeflow.
func (w *write) suspend(ctx context.Context, c *cluster, t target, suspend bool, done string) error {
	if queue := t.object().GetLabels()[frameworkv1.LabelQueue]; queue != "" {
		return &failure{code: exitFailed, message: fmt.Sprintf("%s is in the queue %s of Kueue, which suspends and resumes it", t, queue),
			hint: "set spec.active of its Workload: false suspends it"}
	}
	if is, _, _ := unstructured.NestedBool(t.job.Object.Object, "spec", "runPolicy", "suspend"); is == suspend {
		w.note("%s is %s already.", t, map[bool]string{true: "suspended", false: "not suspended"}[suspend])
		return nil
	}
	change := map[string]any{"metadata": map[string]any{"uid": t.object().GetUID()}, "spec": map[string]any{"runPolicy": map[string]any{"suspend": suspend}}}
	if err := w.patch(ctx, c, t, types.MergePatchType, change); err != nil {
		return err
	}
	w.done(t, done)
	return nil
}

// command sends a Command to a Job of Volcano.
func (w *write) command(ctx context.Context, c *cluster, t target, action busv1alpha1.Action, done string) error {
	if w.dryRun != "client" {
		command := &busv1alpha1.Command{ObjectMeta: metav1.ObjectMeta{Namespace: t.job.Namespace, GenerateName: t.job.Name + "-" + strings.ToLower(string(action)) + "-"}, Action: action,
			Target: &metav1.OwnerReference{APIVersion: t.job.Object.GetAPIVersion(), Kind: t.job.Object.GetKind(), Name: t.job.Name, UID: t.object().GetUID()}}
		_, err := c.reader.Lockstep.BusV1alpha1().Commands(t.job.Namespace).Create(ctx, command, metav1.CreateOptions{DryRun: w.options(), FieldManager: "kubectl-lockstep"})
		if err != nil {
			return err
		}
	}
	w.done(t, done+" by a Command "+string(action))
	return nil
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
			t, err := c.named(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			state := t.state()
			switch {
			case t.fw == nil && t.job.IsPodGroup():
				return unfit(t, "scale the job that the PodGroup is for: spec.minMember of the PodGroup follows")
			case t.fw != nil && view.Final(state):
				return &failure{code: exitFailed, message: fmt.Sprintf("%s has ended: %s; it is not rescaled any more", t.fw.Name, state), hint: "`retry` recreates it"}
			case t.fw == nil && view.JobFinal(state):
				return &failure{code: exitFailed, message: fmt.Sprintf("%s has ended: %s; it is not rescaled any more", t, state), hint: "create it again from its manifest"}
			}
			patch, err := scalePatch(t.object(), rolesOf(t), scale)
			if err != nil {
				return err
			}
			if err := w.patch(cmd.Context(), c, t, types.JSONPatchType, patch); err != nil {
				return err
			}
			w.done(t, "scaled")
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

// role is a role of a job, with the JSON path at which the spec says how many tasks it has.
type role struct {
	name string
	// number is the JSON path of the role's number of tasks. named is the JSON path of the role's name; empty if the
	// name is part of the path.
	number, named string
}

// rolesOf returns the roles of a target: the task roles of a Framework, the replica types of a Kubeflow job, or the
// tasks of a Volcano Job.
func rolesOf(t target) []role {
	var roles []role
	if t.fw != nil {
		for i, r := range t.fw.Spec.TaskRoles {
			at := fmt.Sprintf("/spec/taskRoles/%d/", i)
			roles = append(roles, role{r.Name, at + "taskNumber", at + "name"})
		}
		return roles
	}
	tasks, _, _ := unstructured.NestedSlice(t.job.Object.Object, "spec", "tasks")
	for i, task := range tasks {
		fields, _ := task.(map[string]any)
		name, _ := fields["name"].(string)
		at := fmt.Sprintf("/spec/tasks/%d/", i)
		roles = append(roles, role{name, at + "replicas", at + "name"})
	}
	spec, _, _ := unstructured.NestedMap(t.job.Object.Object, "spec")
	for field, value := range spec {
		replicas, _ := value.(map[string]any)
		for name := range replicas {
			if strings.HasSuffix(field, "ReplicaSpecs") {
				roles = append(roles, role{name: name, number: "/spec/" + field + "/" + name + "/replicas"})
			}
		}
	}
	slices.SortStableFunc(roles, func(a, b role) int { return strings.Compare(a.number, b.number) })
	return roles
}

// scalePatch returns a JSON patch that sets the numbers of tasks. The patch fails if the roles have moved in the spec
// meanwhile.
func scalePatch(object metav1.Object, roles []role, scale map[string]int32) ([]map[string]any, error) {
	patch := []map[string]any{{"op": "test", "path": "/metadata/uid", "value": object.GetUID()}}
	var names []string
	for _, r := range roles {
		names = append(names, r.name)
		wanted := r.name
		// Kubeflow writes Worker in specs, and lower case in Pods and metrics.
		if _, found := scale[wanted]; !found && r.named == "" {
			wanted = strings.ToLower(r.name)
		}
		n, found := scale[wanted]
		if !found {
			continue
		}
		delete(scale, wanted)
		if r.named != "" {
			patch = append(patch, map[string]any{"op": "test", "path": r.named, "value": r.name})
		}
		patch = append(patch, map[string]any{"op": "add", "path": r.number, "value": n})
	}
	for wanted := range scale {
		return nil, &failure{code: exitNotFound, message: fmt.Sprintf("%s has no role %s", object.GetName(), wanted), hint: "its roles are " + strings.Join(names, ", ")}
	}
	return patch, nil
}
