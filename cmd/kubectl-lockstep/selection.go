// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// selection is which Frameworks a verb is for: those that are named, or those with some labels.
type selection struct {
	selector   string
	everywhere bool
}

func (s *selection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "those with these labels, such as team=a,tier!=b, in place of names")
	cmd.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "with -l: those of all namespaces")
}

// check says what is wrong with the names and the flags of a verb.
func (s *selection) check(names []string) error {
	switch {
	case s.selector != "" && len(names) > 0:
		return misuse("a name and a selector don't go together", "leave one of them out")
	case s.everywhere && s.selector == "":
		return misuse("--all-namespaces needs a selector", "-l team=a -A chooses those of all namespaces with that label")
	case s.selector == "" && len(names) == 0:
		return misuse("a name or a selector is needed", "NAME..., or -l such as -l team=a")
	}
	return checkSelector(s.selector)
}

// checkSelector says what is wrong with a selector; it may be empty.
func checkSelector(selector string) error {
	parsed, err := labels.Parse(selector)
	switch {
	case err != nil:
		return misuse("--selector: "+err.Error(), "such as team=a,tier!=b")
	case selector != "" && parsed.Empty():
		return misuse("--selector has no label", "such as team=a")
	default:
		return nil
	}
}

// frameworks are those that are chosen.
func (s *selection) frameworks(ctx context.Context, c *cluster, names []string) ([]*frameworkv1.Framework, error) {
	var chosen []*frameworkv1.Framework
	if s.selector == "" {
		for _, name := range names {
			fw, err := c.framework(ctx, name)
			if err != nil {
				return nil, err
			}
			chosen = append(chosen, fw)
		}
		return chosen, nil
	}
	namespace := c.namespace
	if s.everywhere {
		namespace = metav1.NamespaceAll
	}
	err := c.reader.EachFramework(ctx, namespace, metav1.ListOptions{LabelSelector: s.selector}, func(fw *frameworkv1.Framework) { chosen = append(chosen, fw) })
	return chosen, err
}

// complain tells of a failure with one of several.
func (w *write) complain(fw *frameworkv1.Framework, err error) {
	name := fw.Name
	if w.everywhere {
		name = fw.Namespace + "/" + name
	}
	w.note("%s: %v", name, err)
}

// each does something with each that is chosen. Where several are, it goes on after a failure, which it tells.
func (w *write) each(ctx context.Context, c *cluster, names []string, do func(*frameworkv1.Framework) error) error {
	chosen, err := w.frameworks(ctx, c, names)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		w.note("No Frameworks found%s.", where(w.everywhere, c.namespace))
		return nil
	}
	failures, last := 0, error(nil)
	for _, fw := range chosen {
		err := do(fw)
		if err == nil {
			continue
		}
		if len(chosen) == 1 || ctx.Err() != nil {
			return err
		}
		failures, last = failures+1, err
		w.complain(fw, err)
	}
	if failures == 0 {
		return nil
	}
	code := exitFailed
	if explained := explain(last); explained.code != exitOK {
		code = explained.code
	}
	return &failure{code: code, message: fmt.Sprintf("%d of %d Frameworks failed", failures, len(chosen))}
}
