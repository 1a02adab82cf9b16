// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// pageSize is how many objects one request lists.
const pageSize = 500

// frontEnd is a kind of job beside Frameworks.
type frontEnd struct {
	kind     string
	resource schema.GroupVersionResource
}

// frontEnds are those whose jobs the table has.
func frontEnds() []frontEnd {
	of := func(kind, group, version, resource string) frontEnd {
		return frontEnd{kind, schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
	}
	return []frontEnd{
		of("Job.batch.volcano.sh", "batch.volcano.sh", "v1alpha1", "jobs"),
		of("TFJob", "kubeflow.org", "v1", "tfjobs"),
		of("PyTorchJob", "kubeflow.org", "v1", "pytorchjobs"),
		of("XGBoostJob", "kubeflow.org", "v1", "xgboostjobs"),
		of("PaddleJob", "kubeflow.org", "v1", "paddlejobs"),
		of("JAXJob", "kubeflow.org", "v1", "jaxjobs"),
		of("MPIJob", "kubeflow.org", "v2beta1", "mpijobs"),
	}
}

// getOptions are the flags of get.
type getOptions struct {
	*session
	everywhere bool
	watch      bool
	selector   string
	fields     string
	output     string
	print      *genericclioptions.PrintFlags
}

func newGet(s *session) *cobra.Command {
	o := &getOptions{session: s, print: genericclioptions.NewPrintFlags("")}
	cmd := &cobra.Command{
		Use:   "get [NAME...]",
		Short: "List Frameworks and other jobs, or watch them live",
		Long: `List Frameworks and, unless names are given, the jobs of Volcano and Kubeflow: state, attempt, tasks
that run of all, and what is waited for.

With a name and -w, a live tree of a Framework: attempt, roles and tasks. On a terminal it is
redrawn in place; elsewhere each change is a line.`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show a Framework as a live tree")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "only those with these labels, such as team=a,tier!=b")
	cmd.Flags().StringVar(&o.fields, "field-selector", "", "only those with these fields, such as metadata.name=a")
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
	if o.watch && (len(names) != 1 || o.output != "") {
		return misuse("-w shows one Framework, as a tree", "name one, without -o")
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	if o.watch {
		return o.watchTree(ctx, c, names[0])
	}
	found, err := o.list(ctx, c, names)
	if err != nil {
		return err
	}
	if o.output != "" && o.output != "wide" {
		return o.printObjects(found)
	}
	if len(found.rows) == 0 {
		o.note("No jobs found%s.", where(o.everywhere, c.namespace))
		return nil
	}
	fmt.Fprint(o.out, o.style.Jobs(found.rows, now(), o.everywhere, o.output == "wide"))
	return nil
}

func where(everywhere bool, namespace string) string {
	if everywhere {
		return ""
	}
	return " in namespace " + namespace
}

// jobs are what was found: as rows, and as objects.
type jobs struct {
	rows    []view.Row
	objects []runtime.Object
}

// list finds Frameworks by name, or all jobs that the selectors choose.
func (o *getOptions) list(ctx context.Context, c *cluster, names []string) (*jobs, error) {
	found := &jobs{}
	for _, name := range names {
		fw, err := c.lockstep.FrameworkcontrollerV1().Frameworks(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		found.add(fw)
	}
	if len(names) > 0 {
		return found, nil
	}
	namespace := c.namespace
	if o.everywhere {
		namespace = metav1.NamespaceAll
	}
	options := metav1.ListOptions{LabelSelector: o.selector, FieldSelector: o.fields, Limit: pageSize}
	for {
		page, err := c.lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			found.add(&page.Items[i])
		}
		if options.Continue = page.Continue; page.Continue == "" {
			break
		}
	}
	for _, kind := range frontEnds() {
		if err := found.addAll(ctx, c, kind, namespace, o.selector, o.fields); err != nil && !isUnserved(err) {
			o.note("%s.", unread("Jobs of the kind "+kind.kind, err))
		}
	}
	slices.SortStableFunc(found.rows, func(a, b view.Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return found, nil
}

func (j *jobs) add(fw *frameworkv1.Framework) {
	fw.SetGroupVersionKind(frameworkv1.SchemeGroupVersion.WithKind("Framework"))
	j.rows = append(j.rows, view.RowOfFramework(fw, now()))
	j.objects = append(j.objects, fw)
}

// addAll adds the jobs of a front end.
func (j *jobs) addAll(ctx context.Context, c *cluster, kind frontEnd, namespace, selector, fields string) error {
	options := metav1.ListOptions{LabelSelector: selector, FieldSelector: fields, Limit: pageSize}
	var unreadable error
	for {
		page, err := c.dynamic.Resource(kind.resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			row, err := rowOf(kind, &page.Items[i])
			if err != nil {
				unreadable = errors.Join(unreadable, err)
				continue
			}
			j.rows = append(j.rows, row)
			j.objects = append(j.objects, &page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return unreadable
		}
	}
}

func rowOf(kind frontEnd, object *unstructured.Unstructured) (view.Row, error) {
	if kind.resource.Group != batchv1alpha1.SchemeGroupVersion.Group {
		return view.RowOfTrainingJob(kind.kind, object.Object)
	}
	var job batchv1alpha1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return view.Row{}, fmt.Errorf("reading a Job: %w", err)
	}
	return view.RowOfVolcanoJob(&job), nil
}

// printObjects writes the objects themselves, as -o says.
func (o *getOptions) printObjects(found *jobs) error {
	o.print.OutputFormat = &o.output
	printer, err := o.print.ToPrinter()
	if err != nil {
		return misuse(err.Error(), "-o takes wide, name, json, yaml, jsonpath=… and go-template=…")
	}
	if o.output == "name" || len(found.objects) == 1 {
		for _, object := range found.objects {
			if err := printer.PrintObj(object, o.out); err != nil {
				return err
			}
		}
		return nil
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range found.objects {
		item, err := asUnstructured(object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *item)
	}
	return printer.PrintObj(list, o.out)
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
