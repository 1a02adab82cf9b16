// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
)

// createBare creates the Pods that n Frameworks have, each of a number of tasks.
func (c *cluster) createBare(ctx context.Context, namespace string, of shape, n, tasks int) error {
	var pods []podRecipe
	for i := range n {
		of, err := podsOf(of(fmt.Sprintf("f%d", i), tasks, 0), namespace)
		if err != nil {
			return err
		}
		pods = append(pods, of...)
	}
	return harness.Parallel(ctx, len(pods), func(ctx context.Context, i int) error {
		pod, err := pods[i]()
		if err != nil {
			return err
		}
		_, err = c.Kube.CoreV1().Pods(namespace).Create(ctx, bare(pod.(*corev1.Pod)), metav1.CreateOptions{})
		return err
	})
}

// podRecipe builds a Pod.
type podRecipe = func() (metav1.Object, error)

// podsOf are the Pods that a Framework would have in a namespace: what the core
// decides to create, if every write is done at once.
func podsOf(fw *frameworkv1.Framework, namespace string) ([]podRecipe, error) {
	const enough = 10 // rounds: there is nothing to wait for
	uids := &counter{}
	fw.Namespace, fw.UID = namespace, uids.NewUID()
	snapshot := lifecycle.Snapshot{Framework: fw, Options: lifecycle.Options{
		GangSchedulerName: "lockstep-scheduler", CreationTimeout: time.Hour,
	}}
	snapshot.Current = true
	for range enough {
		decided := lifecycle.Decide(snapshot, time.Now(), uids)
		if decided.Err != nil {
			return nil, decided.Err
		}
		snapshot.Persisted, snapshot.Status, snapshot.Outcomes = decided.Status, decided.Status, nil
		var pods []podRecipe
		for _, action := range decided.Actions {
			switch action.Does() {
			case "CreatePod":
				pods = append(pods, action.Build)
				continue
			case "CreateConfigMap":
				snapshot.ConfigMap = &action.Object.(*corev1.ConfigMap).ObjectMeta
				snapshot.ConfigMap.UID = uids.NewUID()
				snapshot.Outcomes = append(snapshot.Outcomes, plan.Outcome{Action: action, UID: snapshot.ConfigMap.UID})
			case "CreatePodGroup":
				snapshot.PodGroup = action.Object.(*schedulingv1alpha1.PodGroup)
			default:
				return nil, fmt.Errorf("a new Framework calls for %s", action)
			}
		}
		if len(pods) > 0 {
			return pods, nil
		}
	}
	return nil, fmt.Errorf("no Pod is created for Framework %s", fw.Name)
}

// counter counts what should be random.
type counter struct{ last int64 }

func (c *counter) NewUID() types.UID {
	c.last++
	return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", c.last))
}

func (*counter) Between(least, _ int64) int64 { return least }

// bare takes from a Pod what makes Lockstep care for it.
func bare(pod *corev1.Pod) *corev1.Pod {
	pod.OwnerReferences = nil
	for _, label := range []string{frameworkv1.KeyFrameworkName, schedulingv1alpha1.LabelPodGroup, schedulingv1alpha1.LabelRole} {
		delete(pod.Labels, label)
	}
	return pod
}
