// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// inDialects holds gangs with PodGroups of other projects against the same gangs with
// Lockstep's. All kinds are installed and on, whichever the gangs have.
func inDialects(gangs, size int) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for _, dialect := range objects.Foreign {
			if err := s.install(ctx, dialect); err != nil {
				return err
			}
		}
		// The dialect of Volcano is on where its name is served.
		serves := lockstep
		serves.alsoServes = "volcano"
		work := objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: "1"}
		took := map[objects.Dialect]times{}
		all := append([]objects.Dialect{""}, objects.Foreign...)
		for range s.Rounds {
			for _, dialect := range all {
				work.Dialect = dialect
				once, _, err := s.schedule(ctx, serves, work, gangs*size)
				if err != nil {
					return err
				}
				took[dialect] = append(took[dialect], once.Seconds())
			}
			// What was before costs the API server something: nobody comes after the same ones each time.
			slices.Reverse(all)
		}
		for _, dialect := range objects.Foreign {
			s.Report(ratio(fmt.Sprintf("%s: start to last binding", dialect), took[dialect], took[""], "Lockstep's PodGroups", harness.AtMost(1.15)))
		}
		return nil
	}
}

// install installs the kind of a dialect, and waits until it is served.
func (s *stage) install(ctx context.Context, dialect objects.Dialect) error {
	if out, err := s.cluster.KubectlApply(ctx, metav1.NamespaceDefault, dialect.CRD()); err != nil {
		return fmt.Errorf("installing the kind of %s: %w: %s", dialect, err, out)
	}
	return localenv.Await(ctx, fmt.Sprintf("the kind of %s to be served", dialect), func(ctx context.Context) (bool, string, error) {
		_, err := s.groups.Resource(dialect.Resource()).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, "", nil
		}
		return err == nil, "", err
	})
}
