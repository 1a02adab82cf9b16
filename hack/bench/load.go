// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/framework"
)

// parallelism is how many requests a bare client has under way.
const parallelism = 32

// scheduler places all Pods, gangs or not, so that only the gang differs.
const scheduler = "lockstep-scheduler"

// limit bounds one measurement.
const limit = 5 * time.Minute

type bench struct {
	cluster *framework.Cluster
}

// measure runs one way in a namespace of its own and returns how long it took
// until all Pods ran. The cluster is empty again when it returns.
func (b *bench) measure(ctx context.Context, m measured, pods int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	namespace, err := b.namespace(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	created := make(chan error, 1)
	go func() { created <- m.run(ctx, b, namespace) }()
	if err := b.waitRunning(ctx, namespace, pods); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := <-created; err != nil {
		return 0, err
	}
	return took, b.empty(ctx, namespace)
}

func (b *bench) namespace(ctx context.Context) (string, error) {
	namespace, err := b.cluster.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return namespace.Name, wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := b.cluster.Kube.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// waitRunning watches until so many Pods of a namespace run.
func (b *bench) waitRunning(ctx context.Context, namespace string, pods int) error {
	running := map[string]bool{}
	source := cache.NewListWatchFromClient(b.cluster.Kube.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			running[pod.Name] = true
		}
		return len(running) >= pods, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d Pods run: %w", len(running), pods, err)
	}
	return nil
}

// empty deletes all of a namespace and waits until it is gone.
func (b *bench) empty(ctx context.Context, namespace string) error {
	foreground, zero := metav1.DeletePropagationForeground, int64(0)
	err := b.cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &foreground}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	err = b.cluster.Kube.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := b.cluster.Kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := b.cluster.Kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func barePods(n int) func(context.Context, *bench, string) error {
	return func(ctx context.Context, b *bench, namespace string) error {
		return b.createPods(ctx, namespace, "bare", n, nil)
	}
}

func frameworks(n, tasks int) func(context.Context, *bench, string) error {
	return func(ctx context.Context, b *bench, namespace string) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallelism)
		for i := range n {
			group.Go(func() error {
				fw := framework.MakeFramework(fmt.Sprintf("f%d", i)).Gang().
					Role("worker", int32(tasks), framework.RunForever().CPU("1")).Obj()
				_, err := b.cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Create(ctx, fw, metav1.CreateOptions{})
				return err
			})
		}
		return group.Wait()
	}
}

func podGroups(n, members int) func(context.Context, *bench, string) error {
	return func(ctx context.Context, b *bench, namespace string) error {
		for i := range n {
			name := fmt.Sprintf("g%d", i)
			group := &schedulingv1alpha1.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       schedulingv1alpha1.PodGroupSpec{MinMember: int32(members)},
			}
			if _, err := b.cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
				return err
			}
			if err := b.createPods(ctx, namespace, name, members, map[string]string{schedulingv1alpha1.LabelPodGroup: name}); err != nil {
				return err
			}
		}
		return nil
	}
}

func (b *bench) createPods(ctx context.Context, namespace, prefix string, n int, labels map[string]string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i := range n {
		group.Go(func() error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i), Labels: labels},
				Spec: corev1.PodSpec{
					SchedulerName: scheduler,
					Containers: []corev1.Container{{
						Name: "main", Image: "lockstep.dev/simulated:any",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
					}},
				},
			}
			_, err := b.cluster.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}
