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
	"github.com/lockstep-k8s/lockstep/internal/reading"
)

// selection selects the jobs for a command, by names or by labels.
type selection struct {
	selector   string
	everywhere bool
}

func (s *selection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "jobs with these labels, such as team=a,tier!=b, in place of names")
	cmd.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "with -l: jobs of all namespaces")
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

// targets returns what is chosen.
func (s *selection) targets(ctx context.Context, c *cluster, names []string, note func(string, ...any)) ([]target, error) {
	var chosen []target
	if s.selector == "" {
		for _, name := range names {
			t, err := c.named(ctx, name)
			if err != nil {
				return nil, err
			}
			chosen = append(chosen, t)
		}
		return chosen, nil
	}
	namespace := c.namespace
	if s.everywhere {
		namespace = metav1.NamespaceAll
	}
	found, err := c.reader.Jobs(ctx, namespace, metav1.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return nil, err
	}
	for _, what := range found.Unread {
		note("%s.", what)
	}
	for _, object := range found.Objects {
		t := target{}
		if fw, ok := object.(*frameworkv1.Framework); ok {
			t.fw = fw
		} else if t.job, err = reading.JobOf(object); err != nil {
			return nil, err
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// complain reports a failure of one of several.
func (w *write) complain(t target, err error) {
	name := t.object().GetName()
	if w.everywhere {
		name = t.object().GetNamespace() + "/" + name
	}
	w.note("%s: %v", name, err)
}

// each calls do for each chosen job. If there are several jobs, each reports a failure and continues with the next.
// each skips jobs to which the command does not apply, if a selector chose them.
func (w *write) each(ctx context.Context, c *cluster, names []string, do func(target) error) error {
	chosen, err := w.targets(ctx, c, names, w.note)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		w.note("No jobs found%s.", where(w.everywhere, c.namespace))
		return nil
	}
	failures, last := 0, error(nil)
	for _, t := range chosen {
		err := do(t)
		if err == nil {
			continue
		}
		if len(chosen) == 1 || ctx.Err() != nil {
			return err
		}
		w.complain(t, err)
		if w.selector != "" && explain(err).code == exitMisuse {
			continue
		}
		failures, last = failures+1, err
	}
	if failures == 0 {
		return nil
	}
	code := exitFailed
	if explained := explain(last); explained.code != exitOK {
		code = explained.code
	}
	return &failure{code: code, message: fmt.Sprintf("%d of %d jobs failed", failures, len(chosen))}
}
