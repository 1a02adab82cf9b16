// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// getOptions are the flags of get.
type getOptions struct {
	*session
	everywhere bool
	watch      bool
	selector   string
	fields     string
	output     string
	sortBy     string
	print      *genericclioptions.PrintFlags
}

func newGet(s *session) *cobra.Command {
	o := &getOptions{session: s, print: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "get [NAME...]",
		Short: "List Frameworks and other jobs, or watch them live",
		Long: `List Frameworks and the jobs of Volcano and Kubeflow: state, attempt, how many tasks run, or have succeeded if
the job has ended, and the reason: why the job waits, or has failed. A name is that of a Framework, else of a job, else of
a PodGroup; KIND/NAME says which, such as vcjob/train, and NAMESPACE/NAME where.

With -w the table is kept up to date; with -w and the name of a Framework, get shows a live tree of attempt, roles and tasks.
On a terminal both are redrawn in place; elsewhere each change is a line.`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "keep showing changes; one Framework as a tree")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "only jobs with these labels, such as team=a,tier!=b")
	cmd.Flags().StringVar(&o.fields, "field-selector", "", "only jobs with these fields, such as metadata.name=a")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "name", strings.Join(view.Orders(), ", ")+": age shows the newest first, state failed and waiting jobs first")
	if err := cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(view.Orders(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // There is such a flag.
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "wide, name, json, yaml, jsonpath=…, go-template=…")
	return cmd
}

func (o *getOptions) run(ctx context.Context, names []string) error {
	if o.everywhere && len(names) > 0 {
		return misuse("a name and --all-namespaces don't go together", "leave one of them out")
	}
	if (o.selector != "" || o.fields != "") && len(names) > 0 {
		return misuse("a name and a selector don't go together", "leave one of them out")
	}
	if o.watch && o.output != "" && o.output != "wide" {
		return misuse("-w and -o "+o.output+" don't go together", "-w shows a table, also -o wide, or one Framework as a tree")
	}
	if err := checkSelector(o.selector); err != nil {
		return err
	}
	if _, err := fields.ParseSelector(o.fields); err != nil {
		return misuse("--field-selector: "+err.Error(), "such as metadata.name=a")
	}
	if !view.Sort(nil, o.sortBy) {
		return misuse(fmt.Sprintf("unknown order %q for --sort-by", o.sortBy), "orders are "+strings.Join(view.Orders(), ", "))
	}
	var printer printers.ResourcePrinter
	if o.output != "" && o.output != "wide" {
		o.print.OutputFormat = &o.output
		var err error
		if printer, err = o.print.ToPrinter(); err != nil {
			return misuse(err.Error(), "-o takes wide, name, json, yaml, jsonpath=… and go-template=…")
		}
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	switch {
	case o.watch && len(names) == 1 && o.output == "":
		return o.watchOne(ctx, c, names[0])
	case o.watch:
		return o.watchTable(ctx, c, names)
	}
	found, err := o.list(ctx, c, names)
	if err != nil {
		return err
	}
	o.noteUnread(found)
	if printer != nil {
		return o.printObjects(found, printer, len(names) == 1)
	}
	if len(found.Rows) == 0 {
		o.note("No jobs found%s.", where(o.everywhere, c.namespace))
		return nil
	}
	view.Sort(found.Rows, o.sortBy)
	fmt.Fprint(o.out, o.style.Jobs(found.Rows, now(), o.everywhere, o.output == "wide"))
	return nil
}

// watchOne shows a Framework as a tree, and a job of another kind as a table.
func (o *getOptions) watchOne(ctx context.Context, c *cluster, name string) error {
	found, err := o.list(ctx, c, []string{name})
	if err != nil {
		return err
	}
	if _, isFramework := found.Objects[0].(*frameworkv1.Framework); !isFramework {
		return o.watchTable(ctx, c, []string{name})
	}
	return o.watchTree(ctx, c.in(found.Rows[0].Namespace), found.Rows[0].Name)
}

func where(everywhere bool, namespace string) string {
	if everywhere {
		return ""
	}
	return " in namespace " + namespace
}

// noteUnread reports what could not be listed.
func (o *getOptions) noteUnread(found *reading.Jobs) {
	for _, what := range found.Unread {
		o.note("%s.", what)
	}
}

// list finds jobs by name, or all jobs that the selectors choose.
func (o *getOptions) list(ctx context.Context, c *cluster, names []string) (*reading.Jobs, error) {
	if len(names) == 0 {
		namespace := c.namespace
		if o.everywhere {
			namespace = metav1.NamespaceAll
		}
		return c.reader.Jobs(ctx, namespace, metav1.ListOptions{LabelSelector: o.selector, FieldSelector: o.fields})
	}
	found := &reading.Jobs{}
	for _, name := range names {
		if err := c.addNamed(ctx, name, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// addNamed adds the job of a name, as people write it.
func (c *cluster) addNamed(ctx context.Context, name string, to *reading.Jobs) error {
	named, err := reading.ParseName(c.namespace, name)
	if err != nil {
		return err
	}
	return c.reader.AddNamed(ctx, named, to)
}

// printObjects writes the objects themselves in the format of -o. A list is always printed as a list, even with one
// object.
func (o *getOptions) printObjects(found *reading.Jobs, printer printers.ResourcePrinter, one bool) error {
	var text bytes.Buffer
	if o.output == "name" || one {
		for _, object := range found.Objects {
			if err := printer.PrintObj(object, &text); err != nil {
				return err
			}
		}
		return o.write(text.String())
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range found.Objects {
		item, err := asUnstructured(object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *item)
	}
	if err := printer.PrintObj(list, &text); err != nil {
		return err
	}
	return o.write(text.String())
}

func asUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u, nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var u unstructured.Unstructured
	return &u, u.UnmarshalJSON(data)
}
