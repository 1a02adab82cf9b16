// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// controllerManager is its name in lockstep-local's list of components.
const controllerManager = "kube-controller-manager"

// stage is a cluster with nodes on which nothing happens but what is measured.
type stage struct {
	*harness.Bench
	cluster *harness.Cluster
	// kube speaks protobuf, as schedulers do.
	kube kubernetes.Interface
	// groups is for the PodGroups of other projects.
	groups dynamic.Interface
}

// onStage measures on a stage with a number of nodes.
func onStage(ctx context.Context, b *harness.Bench, nodes int, measure func(context.Context, *stage) error) (err error) {
	cluster, err := b.Up(ctx, localenv.Options{With: "none"})
	if err != nil {
		return err
	}
	config := rest.CopyConfig(cluster.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	groups, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		return err
	}
	s := &stage{Bench: b, cluster: cluster, kube: kube, groups: groups}
	if _, err := cluster.CreateNamespace(ctx, metav1.ObjectMeta{Name: objects.Namespace}); err != nil {
		return err
	}
	// Nothing of what is measured needs the controller manager. Left alone, it
	// would find that nobody plays the nodes.
	program, err := cluster.Program(controllerManager)
	if err != nil {
		return err
	}
	if err := syscall.Kill(program.PID, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pausing %s: %w", controllerManager, err)
	}
	defer func() { err = errors.Join(err, syscall.Kill(program.PID, syscall.SIGCONT)) }()
	if err := s.makeNodes(ctx, nodes); err != nil {
		return err
	}
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	return measure(ctx, s)
}

// warmUp sends enough Pods through the API server for what happens once not to be
// measured. Its buffers grow to what is asked of them. And it finds out that the
// paused controller manager does not read what it watches: then it holds all
// events up for a tenth of a second, and ends other watches that are behind too.
func (s *stage) warmUp(ctx context.Context) error {
	const enough = 2000
	if err := s.createPods(ctx, pods(enough, scheduler{schedulerName: "nobody"})); err != nil {
		return err
	}
	return s.clear(ctx)
}

func (s *stage) makeNodes(ctx context.Context, n int) error {
	nodes := s.kube.CoreV1().Nodes()
	return harness.Parallel(ctx, n, func(ctx context.Context, i int) error {
		node, err := nodes.Create(ctx, objects.Scene{}.Node(i), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating node %d: %w", i, err)
		}
		// The API server taints new nodes as not ready.
		node.Spec.Taints = nil
		if _, err := nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("removing the taint of %s: %w", node.Name, err)
		}
		return nil
	})
}
