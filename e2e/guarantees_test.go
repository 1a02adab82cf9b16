//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// held is how long a test looks whether nothing happens while Pods are held.
const held = 2 * time.Second

// TestConsistencyGuarantees ends tasks, attempts and Frameworks in all ways while
// their Pods take their time. What follows must not begin before they are gone.
func TestConsistencyGuarantees(t *testing.T) {
	// began says whether an attempt of the Framework and of its worker has begun.
	began := func(attempt, taskAttempt int32) func(*frameworkv1.Framework) bool {
		return func(fw *frameworkv1.Framework) bool {
			worker := task(fw, "worker", 0)
			return worker != nil && fw.Status.AttemptStatus.ID == attempt && worker.AttemptStatus.ID == taskAttempt
		}
	}
	completed := func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.State == frameworkv1.FrameworkCompleted
	}
	for name, tc := range map[string]struct {
		worker *jobs.TaskBuilder
		// end ends what runs; after it, Pods are being deleted.
		end func(t *testing.T, namespace, name string)
		// what must follow, and not too early
		then string
		seen func(*frameworkv1.Framework) bool
	}{
		"a Pod is deleted": {
			worker: jobs.RunForever().Retry(true, 0),
			end:    func(t *testing.T, namespace, name string) { cluster.DeletePod(t, namespace, name+"-worker-0") },
			then:   "retry the task", seen: began(0, 1),
		},
		"a task fails": {
			worker: jobs.RunFor(time.Second, 9).InFirstTaskAttempts(1).Retry(false, 1),
			end:    func(*testing.T, string, string) {},
			then:   "retry the task", seen: began(0, 1),
		},
		"the ConfigMap is deleted": {
			worker: jobs.RunForever(),
			end: func(t *testing.T, namespace, name string) {
				if err := cluster.Kube.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name+"-attempt", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			then: "begin the next attempt", seen: began(1, 0),
		},
		"an attempt fails": {
			worker: jobs.RunFor(time.Second, 200).InFirstAttempts(1),
			end:    func(*testing.T, string, string) {},
			then:   "begin the next attempt", seen: began(1, 0),
		},
		"the Framework is stopped": {
			worker: jobs.RunForever(),
			end: func(t *testing.T, namespace, name string) {
				setExecutionType(t, namespace, name, frameworkv1.ExecutionStop)
			},
			then: "be Completed", seen: completed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			recording := cluster.Record(t, namespace)
			fw := jobs.MakeFramework("guarded").Retry(true, 0).
				Role("worker", 1, tc.worker.Held()).Role("other", 2, jobs.RunForever().Held()).Obj()
			cluster.CreateFramework(t, namespace, fw)
			cluster.WaitFramework(t, namespace, fw.Name, "have all its Pods on record", func(fw *frameworkv1.Framework) bool {
				for _, first := range []*frameworkv1.TaskStatus{task(fw, "worker", 0), task(fw, "other", 0), task(fw, "other", 1)} {
					if first == nil || first.AttemptStatus.PodUID == nil {
						return false
					}
				}
				return true
			})
			before := podUIDs(t, namespace, fw.Name)

			tc.end(t, namespace, fw.Name)
			testbed.Eventually(t, "the worker's Pod to be deleted", func(ctx context.Context) (bool, string, error) {
				pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, fw.Name+"-worker-0", metav1.GetOptions{})
				return err == nil && pod.DeletionTimestamp != nil, fmt.Sprint(pod.DeletionTimestamp), err
			})
			testbed.Consistently(t, "nothing follows while the Pods are there", held, func(context.Context) (bool, string, error) {
				got, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(t.Context(), fw.Name, metav1.GetOptions{})
				if err != nil {
					return false, "", err
				}
				return !tc.seen(got), localenv.DescribeFramework(got), nil
			})
			for pod, uid := range podUIDs(t, namespace, fw.Name) {
				if before[pod] != uid {
					t.Errorf("Pod %s was replaced while it was there", pod)
				}
			}
			cluster.WaitFramework(t, namespace, fw.Name, tc.then+", and run or be at its end", func(got *frameworkv1.Framework) bool {
				cluster.Release(t, namespace)
				return tc.seen(got) && (completed(got) || got.Status.Tasks.Running == got.Status.Tasks.Total)
			})
			recording.Check(t)
		})
	}
}

// podUIDs are the UIDs of a Framework's Pods by name.
func podUIDs(t *testing.T, namespace, name string) map[string]types.UID {
	t.Helper()
	pods, err := cluster.PodsOf(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, pod := range pods {
		uids[pod.Name] = pod.UID
	}
	return uids
}
