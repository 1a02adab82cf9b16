// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestFrameworksOfOtherNamespacesAreLeftAlone runs a controller of two namespaces beside Frameworks
// in three. Nothing but classes of priority is read of the whole cluster.
func TestFrameworksOfOtherNamespacesAreLeftAlone(t *testing.T) {
	var wide, touched []string
	inClusterWith(t, func(c *cluster) {
		for _, namespace := range []string{"ns", "other", "third"} {
			f := newFramework(2)
			f.Namespace = namespace
			apiserver.Add(c.server, f)
		}
		c.config.Namespaces = []string{"ns", "third"}
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			switch {
			case r.Namespace == "":
				wide = append(wide, r.Resource)
			case r.Namespace == "other":
				touched = append(touched, r.String())
			}
			return apiserver.Fault{}
		})
	}, func(t *testing.T, c *cluster) {
		for _, namespace := range c.config.Namespaces {
			begun := time.Now()
			for f := (*frameworkv1.Framework)(nil); f == nil || f.Status == nil || f.Status.State != frameworkv1.FrameworkAttemptRunning; {
				c.pass(50 * time.Millisecond)
				for _, pod := range []string{"fw-w-0", "fw-w-1"} {
					if p := apiserver.Find[corev1.Pod](c.server, namespace, pod); p != nil && p.Status.Phase != corev1.PodRunning {
						apiserver.Change(c.server, namespace, pod, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })
					}
				}
				f = apiserver.Find[frameworkv1.Framework](c.server, namespace, "fw")
				if time.Since(begun) > time.Minute {
					t.Fatalf("the Framework in %s never runs", namespace)
				}
			}
		}
		slices.Sort(wide)
		if diff := cmp.Diff([]string{"priorityclasses"}, slices.Compact(wide)); diff != "" {
			t.Errorf("what is read of all namespaces (-want,+got):\n%s", diff)
		}
		if len(touched) > 0 {
			t.Errorf("the namespace of nobody's concern was touched: %v", touched)
		}
	})
}
