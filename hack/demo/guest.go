// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

const (
	// guestNamespace holds all of the demo in a cluster of somebody else's, but for the CRDs.
	guestNamespace = "lockstep-demo"
	// seat is an extended resource of which one node gets as many as there are workers, so that there
	// is room for one job, however large the cluster is.
	seat = "demo.lockstep.dev/seat"
)

// guest is the demo in a cluster of somebody else's. The programs of Lockstep run on this machine, with the
// rights of the kubeconfig, and serve the namespace of the demo alone. What the demo brings, it takes away.
type guest struct {
	cluster *localenv.Cluster
	leave   []func(context.Context) error // what undoes each step, the last step's first
}

// enter brings Lockstep into the cluster. What it has done is undone by Leave, also after an error.
func (g *guest) enter(ctx context.Context) error {
	if err := g.refuseBesideLockstep(ctx); err != nil {
		return err
	}
	installs, err := g.lacksKinds(ctx)
	if err != nil {
		return err
	}
	if err := g.makeNamespace(ctx); err != nil {
		return err
	}
	if err := g.makeRoom(ctx); err != nil {
		return err
	}
	return g.start(ctx, installs)
}

// Leave undoes what enter has done.
func (g *guest) Leave(ctx context.Context) error {
	var errs []error
	for _, undo := range slices.Backward(g.leave) {
		errs = append(errs, undo(ctx))
	}
	return errors.Join(errs...)
}

// refuseBesideLockstep ends the demo where Lockstep runs: two of it would contend for the same jobs.
func (g *guest) refuseBesideLockstep(ctx context.Context) error {
	leases, err := g.cluster.Kube.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for a Lockstep that runs in the cluster: %w", err)
	}
	for _, lease := range leases.Items {
		if strings.HasPrefix(lease.Name, "lockstep-") && isHeld(&lease, time.Now()) {
			return fmt.Errorf("the cluster has a Lockstep that runs: the lease %s/%s is held. The demo is for clusters without it", lease.Namespace, lease.Name)
		}
	}
	return nil
}

func isHeld(lease *coordinationv1.Lease, now time.Time) bool {
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second))
}

func (g *guest) makeNamespace(ctx context.Context) error {
	_, err := g.cluster.CreateNamespace(ctx, metav1.ObjectMeta{Name: guestNamespace})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the namespace %s exists, from a demo that was killed or runs: delete it first", guestNamespace)
	}
	g.leave = append(g.leave, func(ctx context.Context) error { return g.cluster.DeleteNamespace(ctx, guestNamespace) })
	return err
}

// makeRoom gives seats for one job to a node that takes Pods.
func (g *guest) makeRoom(ctx context.Context) error {
	nodes, err := g.cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for a node: %w", err)
	}
	i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return takesPods(&n) })
	if i < 0 {
		return fmt.Errorf("none of the %d nodes is ready and without taints", len(nodes.Items))
	}
	name := nodes.Items[i].Name
	set := func(ctx context.Context, value string) error {
		patch := fmt.Sprintf(`{"status": {"capacity": {%[1]q: %[2]s}, "allocatable": {%[1]q: %[2]s}}}`, seat, value)
		_, err := g.cluster.Kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("setting the seats of node %s: %w", name, err)
		}
		return nil
	}
	g.leave = append(g.leave, func(ctx context.Context) error { return set(ctx, "null") })
	return set(ctx, fmt.Sprintf("%q", fmt.Sprint(workers)))
}

// takesPods says whether a Pod without tolerations can go to a node.
func takesPods(n *corev1.Node) bool {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	})
}

// lacksKinds says whether the CRDs are to be installed. Those that are installed go with the demo; those
// that are there are somebody's, and stay as they are.
func (g *guest) lacksKinds(ctx context.Context) (bool, error) {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	kinds := []string{"frameworks.frameworkcontroller.microsoft.com", "podgroups.scheduling.lockstep.dev"}
	client := g.cluster.Kube.Discovery().RESTClient()
	var absent []string
	for _, kind := range kinds {
		err := client.Get().AbsPath(path + kind).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			absent = append(absent, kind)
		} else if err != nil {
			return false, fmt.Errorf("looking for the CRD %s: %w", kind, err)
		}
	}
	if len(absent) == 1 {
		return false, fmt.Errorf("the cluster lacks the CRD %s and has the other one of Lockstep's: remove it, or install both", absent[0])
	}
	for _, kind := range absent {
		g.leave = append(g.leave, func(ctx context.Context) error {
			err := client.Delete().AbsPath(path + kind).Do(ctx).Error()
			if apierrors.IsNotFound(err) {
				return nil // it was never made
			}
			return err
		})
	}
	return len(absent) > 0, nil
}

// start runs Lockstep's programs on this machine, for the namespace of the demo alone.
func (g *guest) start(ctx context.Context, installs bool) error {
	config := filepath.Join(g.cluster.Dir, "controller.yaml")
	text := fmt.Sprintf("namespaces: [%[1]s]\nleaderElection: {namespace: %[1]s}\n", guestNamespace)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of the controller: %w", err)
	}
	kubeconfig := "--kubeconfig=" + g.cluster.Kubeconfig
	for program, args := range map[string][]string{
		"lockstep-controller": {kubeconfig, "--config=" + config, fmt.Sprintf("--install-crds=%v", installs), "--secure-port=0"},
		"lockstep-scheduler": {kubeconfig, "--namespaces=" + guestNamespace, "--leader-elect=false", "--secure-port=0",
			"--authentication-skip-lookup"},
	} {
		// They end before the objects that they serve, not with ctx, so that the cluster is left tidy.
		process, err := localenv.Start(context.WithoutCancel(ctx), filepath.Join(g.cluster.Logs(), program+".log"), program, args...)
		if err != nil {
			return fmt.Errorf("starting %s: %w", program, err)
		}
		g.leave = append(g.leave, process.Terminate)
	}
	return localenv.Await(ctx, "the kinds of Lockstep to be served", func(ctx context.Context) (bool, string, error) {
		_, err := g.cluster.Lockstep.FrameworkcontrollerV1().Frameworks(guestNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			_, err = g.cluster.Lockstep.SchedulingV1alpha1().PodGroups(guestNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		}
		return err == nil, "", err
	})
}
