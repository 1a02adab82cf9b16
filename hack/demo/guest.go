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
	"k8s.io/apimachinery/pkg/util/uuid"

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
	// First of all: a demo that runs beside this one has it.
	if err := g.makeNamespace(ctx); err != nil {
		return err
	}
	if err := g.makeKinds(ctx); err != nil {
		return err
	}
	if err := g.makeRoom(ctx); err != nil {
		return err
	}
	return g.start(ctx)
}

// Leave undoes what enter has done.
func (g *guest) Leave(ctx context.Context) error {
	if len(g.leave) > 0 {
		fmt.Println("Taking away what the demo has brought, which may take a few minutes …")
	}
	var errs []error
	for _, undo := range slices.Backward(g.leave) {
		errs = append(errs, undo(ctx))
	}
	return errors.Join(errs...)
}

// refuseBesideLockstep ends the demo where Lockstep runs: two of it would contend for the same jobs. What another demo
// runs is known by its namespace.
func (g *guest) refuseBesideLockstep(ctx context.Context) error {
	leases, err := g.cluster.Kube.CoordinationV1().Leases("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for a Lockstep that runs in the cluster: %w", err)
	}
	for _, lease := range leases.Items {
		if strings.HasPrefix(lease.Name, "lockstep-") && lease.Namespace != guestNamespace && isHeld(&lease, time.Now()) {
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
	// Its label says whose it is: who gets an error does not know whether he has made it, or whether there is one.
	mark := string(uuid.NewUUID())
	g.leave = append(g.leave, func(ctx context.Context) error { return g.removeNamespace(ctx, mark) })
	_, err := g.cluster.CreateNamespace(ctx, metav1.ObjectMeta{Name: guestNamespace, Labels: map[string]string{labelMade: mark}})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the namespace %s exists, from a demo that was killed or runs: delete it first", guestNamespace)
	}
	return err
}

// removeNamespace takes the namespace away that has the mark of this demo.
func (g *guest) removeNamespace(ctx context.Context, mark string) error {
	there, err := g.cluster.Kube.CoreV1().Namespaces().Get(ctx, guestNamespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && there.Labels[labelMade] != mark:
		return nil
	case err != nil:
		return fmt.Errorf("looking whether the namespace %s is left: %w", guestNamespace, err)
	}
	return g.cluster.DeleteNamespace(ctx, guestNamespace)
}

// makeRoom gives seats for one job to a node that takes Pods, and takes those away that a demo which was
// killed has left.
func (g *guest) makeRoom(ctx context.Context) error {
	if err := g.clearSeats(ctx); err != nil {
		return err
	}
	nodes, err := g.cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for a node: %w", err)
	}
	i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return takesPods(&n) })
	if i < 0 {
		return fmt.Errorf("none of the %d nodes is ready and without taints", len(nodes.Items))
	}
	g.leave = append(g.leave, g.clearSeats)
	return g.setSeats(ctx, nodes.Items[i].Name, fmt.Sprintf("%q", fmt.Sprint(workers)))
}

// clearSeats takes the seats of all nodes away.
func (g *guest) clearSeats(ctx context.Context) error {
	nodes, err := g.cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for nodes with seats: %w", err)
	}
	var errs []error
	for _, node := range nodes.Items {
		_, total := node.Status.Capacity[seat]
		_, free := node.Status.Allocatable[seat]
		if total || free {
			errs = append(errs, g.setSeats(ctx, node.Name, "null"))
		}
	}
	return errors.Join(errs...)
}

// setSeats sets the seats of a node to a value, as JSON.
func (g *guest) setSeats(ctx context.Context, node, value string) error {
	patch := fmt.Sprintf(`{"status": {"capacity": {%[1]q: %[2]s}, "allocatable": {%[1]q: %[2]s}}}`, seat, value)
	_, err := g.cluster.Kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("setting the seats of node %s: %w", node, err)
	}
	return nil
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

// start runs Lockstep's programs on this machine, for the namespace of the demo alone.
func (g *guest) start(ctx context.Context) error {
	config := filepath.Join(g.cluster.Dir, "controller.yaml")
	text := fmt.Sprintf("namespaces: [%[1]s]\nleaderElection: {enabled: true, namespace: %[1]s}\n", guestNamespace)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of the controller: %w", err)
	}
	kubeconfig := "--kubeconfig=" + g.cluster.Kubeconfig
	// If the demo is killed they run on until somebody deletes the namespace: with it they lose the Leases, and end.
	for program, args := range map[string][]string{
		"lockstep-controller": {kubeconfig, "--config=" + config, "--secure-port=0"},
		"lockstep-scheduler": {kubeconfig, "--namespaces=" + guestNamespace, "--leader-elect", "--leader-elect-resource-namespace=" + guestNamespace,
			"--secure-port=0", "--authentication-skip-lookup"},
	} {
		// They end before the objects that they serve, not with ctx, so that the cluster is left tidy.
		process, err := localenv.Start(context.WithoutCancel(ctx), filepath.Join(g.cluster.Logs(), program+".log"), program, args...)
		if err != nil {
			return fmt.Errorf("starting %s: %w", program, err)
		}
		g.leave = append(g.leave, func(ctx context.Context) error {
			if err := process.Terminate(ctx); !process.Ended() {
				return err
			}
			return nil // Ctrl-C may have ended it before.
		})
	}
	err := localenv.Await(ctx, "the kinds of Lockstep to be served", func(ctx context.Context) (bool, string, error) {
		_, err := g.cluster.Lockstep.FrameworkcontrollerV1().Frameworks(guestNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			_, err = g.cluster.Lockstep.SchedulingV1alpha1().PodGroups(guestNamespace).List(ctx, metav1.ListOptions{Limit: 1})
		}
		return err == nil, "", err
	})
	if err != nil {
		return err
	}
	// A program that does not lead yet would not end with the namespace: it has no Lease to lose.
	return localenv.Await(ctx, "the controller and the scheduler to lead", func(ctx context.Context) (bool, string, error) {
		for _, name := range []string{"lockstep-controller", "lockstep-scheduler"} {
			lease, err := g.cluster.Kube.CoordinationV1().Leases(guestNamespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || !isHeld(lease, time.Now()) {
				return false, name + " does not lead", err
			}
		}
		return true, "", nil
	})
}
