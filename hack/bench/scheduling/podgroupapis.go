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

// inPodGroupAPIs holds gangs with PodGroups of other projects against the same gangs with
// Lockstep's. All kinds are installed and on, whichever the gangs have.
func inPodGroupAPIs(gangs, size int) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for _, api := range objects.Foreign {
			if err := s.install(ctx, api); err != nil {
				return err
			}
		}
		// The API of Volcano is on where its name is served.
		serves := lockstep
		serves.alsoServes = "volcano"
		work := objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: "1"}
		took := map[objects.API]times{}
		all := append([]objects.API{""}, objects.Foreign...)
		for range s.Rounds {
			for _, api := range all {
				work.API = api
				once, _, err := s.schedule(ctx, serves, work, gangs*size)
				if err != nil {
					return err
				}
				took[api] = append(took[api], once.Seconds())
			}
			// What was before costs the API server something: nobody comes after the same ones each time.
			slices.Reverse(all)
		}
		for _, api := range objects.Foreign {
			s.Report(ratio(fmt.Sprintf("%s: start to last binding", api), took[api], took[""], "Lockstep's PodGroups", harness.AtMost(1.15)))
		}
		return nil
	}
}

// install installs the kind of an API, and waits until it is served.
func (s *stage) install(ctx context.Context, api objects.API) error {
	if out, err := s.cluster.KubectlApply(ctx, metav1.NamespaceDefault, api.CRD()); err != nil {
		return fmt.Errorf("installing the kind of %s: %w: %s", api, err, out)
	}
	return localenv.Await(ctx, fmt.Sprintf("the kind of %s to be served", api), func(ctx context.Context) (bool, string, error) {
		_, err := s.groups.Resource(api.Resource()).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, "", nil
		}
		return err == nil, "", err
	})
}
