// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/install"
	"github.com/lockstep-k8s/lockstep/localcluster/process"
	"github.com/lockstep-k8s/lockstep/localcluster/simnodes"
	"github.com/lockstep-k8s/lockstep/manifests"
)

// startTimeout bounds the start of everything, which takes about ten seconds on two idle
// processors.
const startTimeout = 3 * time.Minute

// pollInterval is the time between two looks at the API server.
const pollInterval = 100 * time.Millisecond

// bringUp starts the cluster and returns when it may be used.
func (s *supervisor) bringUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	if err := prepare(&s.plan, time.Now()); err != nil {
		return err
	}
	var err error
	if s.health, err = newHealthChecker(s.plan.Layout); err != nil {
		return err
	}
	for _, program := range s.plan.ControlPlane() {
		if err := s.start(ctx, program); err != nil {
			return err
		}
	}
	config, client, err := s.client()
	if err != nil {
		return err
	}
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error { return s.installLockstep(groupContext, config) })
	group.Go(func() error { return s.simulateNodes(groupContext, client) })
	group.Go(func() error { return s.startRealNode(groupContext, client) })
	group.Go(func() error { return waitServiceAccounts(groupContext, client) })
	if err := group.Wait(); err != nil {
		return err
	}
	return s.startLockstep(ctx)
}

// start runs a program until it is healthy.
func (s *supervisor) start(ctx context.Context, program cluster.Program) error {
	began := time.Now()
	s.mu.Lock()
	s.state.Address[program.Name] = program.Address
	s.mu.Unlock()
	spec := process.Spec{
		Name: program.Name,
		Path: program.Path,
		Args: program.Args,
		Dir:  s.plan.Layout.Dir,
		// KWOK wants a directory of its own, and would take it in the user's home.
		Env: []string{"KWOK_WORKDIR=" + s.plan.Layout.Dir + "/kwok"},
		Log: s.plan.Layout.Log(program.Name),
	}
	healthy := func(ctx context.Context) error { return s.health.check(ctx, program.HealthURL) }
	if err := s.group.Start(ctx, spec, healthy); err != nil {
		return err
	}
	s.progress("%s is up after %s", program.Name, since(began))
	return nil
}

func (s *supervisor) client() (*rest.Config, kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.plan.Layout.Kubeconfig())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, -1 // the API server has its own limits
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	return config, client, nil
}

func (s *supervisor) installLockstep(ctx context.Context, config *rest.Config) error {
	var source fs.FS = manifests.FS
	if dir := s.plan.Options.Manifests; dir != "" {
		source = os.DirFS(dir)
	}
	objects, err := install.Manifests(source)
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, config, objects); err != nil {
		return err
	}
	s.progress("installed %d objects of Lockstep", len(objects))
	return nil
}

// waitServiceAccounts waits until Pods can be created: admission wants the service account
// "default" of their namespace.
func waitServiceAccounts(ctx context.Context, client kubernetes.Interface) error {
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return fmt.Errorf("waiting for the default service account of %s: %w", namespace, err)
		}
	}
	return nil
}

func (s *supervisor) simulateNodes(ctx context.Context, client kubernetes.Interface) error {
	o := s.plan.Options
	if o.SimulatedNodes == 0 {
		return nil
	}
	began := time.Now()
	if err := simnodes.Guard(ctx, client, cluster.KwokUser); err != nil {
		return err
	}
	if err := s.start(ctx, s.plan.Kwok()); err != nil {
		return err
	}
	capacity := simnodes.Capacity{CPU: o.NodeCPU, Memory: o.NodeMemory, Pods: o.NodePods}
	if err := simnodes.Create(ctx, client, o.SimulatedNodes, capacity, o.Release().Version); err != nil {
		return err
	}
	selector := simnodes.TypeLabel + "=" + simnodes.TypeKwok
	if err := waitNodes(ctx, client, selector, o.SimulatedNodes); err != nil {
		return err
	}
	if err := waitServiceAccounts(ctx, client); err != nil {
		return err
	}
	if err := tryOut(ctx, client, simnodes.Probe()); err != nil {
		return err
	}
	s.progress("%d simulated nodes are ready after %s", o.SimulatedNodes, since(began))
	return nil
}

// waitNodes waits until n nodes are ready and take Pods.
func waitNodes(ctx context.Context, client kubernetes.Interface, selector string, n int) error {
	ready := 0
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err
		}
		ready = 0
		for i := range nodes.Items {
			if IsReady(&nodes.Items[i]) {
				ready++
			}
		}
		return ready >= n, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d nodes, %d are ready: %w", n, ready, err)
	}
	return nil
}

// IsReady tells whether a node is ready and free of the taint that a new node carries until
// kube-controller-manager has seen it ready.
func IsReady(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// tryOut creates a Pod, waits until it runs, and deletes it.
func tryOut(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Pod to try out a node: %w", err)
	}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		current, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		return err == nil && current.Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		return fmt.Errorf("waiting for a Pod to run on node %s: %w", pod.Spec.NodeName, err)
	}
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting the Pod that tried out a node: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("waiting for a Pod to be deleted from node %s: %w", pod.Spec.NodeName, err)
	}
	return nil
}

func (s *supervisor) startLockstep(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, program := range s.plan.Lockstep() {
		group.Go(func() error { return s.start(ctx, program) })
	}
	return group.Wait()
}

func (s *supervisor) progress(format string, args ...any) {
	s.tell.send(Message{Progress: strings.TrimSpace(fmt.Sprintf(format, args...))})
}

func since(t time.Time) time.Duration {
	return time.Since(t).Round(100 * time.Millisecond)
}
