// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// runAll lets time go by in which Pods get nodes and run.
func (c *cluster) runAll(d time.Duration) {
	c.pass(d)
	c.runNodes(1)
	c.runNodes(1)
	c.pass(d)
}

// podUID is the UID of a Pod that is there and not being deleted, empty if there is none.
func (c *cluster) podUID(namespace, name string) types.UID {
	pod := apiserver.Find[corev1.Pod](c.server, namespace, name)
	if pod == nil || pod.DeletionTimestamp != nil {
		return ""
	}
	return pod.UID
}

// killOther has a program die that is not the one which leads.
func (c *cluster) killOther(other *program) {
	leader := c.program
	c.program = other
	c.killProgram()
	c.program = leader
}

// TestAPodThatRunsAlthoughItsCreationIsRefusedIsAdopted: the answer to its creation was
// lost, and a policy that came later refuses the next try before the name is looked at.
func TestAPodThatRunsAlthoughItsCreationIsRefusedIsAdopted(t *testing.T) {
	refusals := map[string]error{
		"a webhook": apiserver.WebhookDenied("policy.example.com", "no"),
		"a role":    apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "fw-w-0", nil),
		"a schema":  apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "fw-w-0", nil),
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				tries := 0
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if !creates(r, "pods", "fw-w-") {
						return apiserver.Fault{}
					}
					if tries++; tries == 1 {
						return apiserver.Fault{LoseAnswer: true}
					}
					return apiserver.Fault{Refusal: refusal}
				})
				c.program.process.Hold("pods")
				c.add("ns", "fw", map[string]int32{"w": 1})
				for tries < 1 {
					c.pass(time.Millisecond)
				}
				created := c.podUID("ns", "fw-w-0")
				c.runAll(10 * time.Second)
				if tries < 2 || created == "" {
					t.Fatalf("%d tries, and the Pod %q: want a Pod and another try", tries, created)
				}
				c.program.process.ReleaseAll("pods")
				c.runAll(time.Minute)
				if got := c.podUID("ns", "fw-w-0"); got != created {
					t.Errorf("the task has the Pod %q, want %q, which was created", got, created)
				}
				if task := c.statusOf("ns", "fw").AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]; task.State != frameworkv1.TaskAttemptRunning || task.AttemptStatus.ID != 0 {
					t.Errorf("the task is %s in attempt %d, want it Running in its first", task.State, task.AttemptStatus.ID)
				}
			})
		})
	}
}

// TestAPodThatRunsAlthoughItsTemplateIsBrokenIsAdopted: the answer to its creation was
// lost, and then the user has changed the template.
func TestAPodThatRunsAlthoughItsTemplateIsBrokenIsAdopted(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		tries := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if !creates(r, "pods", "fw-w-") {
				return apiserver.Fault{}
			}
			tries++
			return apiserver.Fault{LoseAnswer: true, After: time.Second}
		})
		c.program.process.Hold("pods")
		c.add("ns", "fw", map[string]int32{"w": 1})
		for tries < 1 {
			c.pass(time.Millisecond)
		}
		apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
			f.Spec.TaskRoles[0].Task.Pod = runtime.RawExtension{Raw: []byte(`{"spec":{"containers":"none"}}`)}
		})
		created := c.podUID("ns", "fw-w-0")
		c.runAll(10 * time.Second)
		c.program.process.ReleaseAll("pods")
		c.runAll(time.Minute)
		if task := c.statusOf("ns", "fw").AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]; task.State != frameworkv1.TaskAttemptRunning || task.AttemptStatus.ID != 0 || created == "" {
			t.Errorf("the task is %s in attempt %d, want it Running in its first, by the Pod %q", task.State, task.AttemptStatus.ID, created)
		}
	})
}

// TestADeposedLeaderDeletesNoPodOfItsSuccessor: it was frozen while its successor went
// on, and thaws. Pods are the first that it sees.
func TestADeposedLeaderDeletesNoPodOfItsSuccessor(t *testing.T) {
	const (
		failed = "fw-w-0"
		added  = "fw-w-1"
	)
	// Each goes on with a Framework of one task, and returns the name of the new Pod.
	successors := map[string]func(c *cluster) string{
		"of another attempt of a task": func(c *cluster) string {
			first := c.podUID("ns", failed)
			c.ends = func(pod *corev1.Pod) (int32, bool) { return 1, pod.UID == first }
			return failed
		},
		"of a task that was added": func(c *cluster) string {
			apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 2 })
			return added
		},
		"of another attempt of the Framework": func(c *cluster) string {
			apiserver.DeleteObject[corev1.ConfigMap](c.server, "ns", "fw-attempt", *metav1.NewDeleteOptions(0))
			return failed
		},
	}
	for name, goOn := range successors {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				f := job("ns", "fw", map[string]int32{"w": 1})
				f.Spec.RetryPolicy.MaxRetryCount = 3
				apiserver.Add(c.server, f)
				c.runAll(10 * time.Second)
				c.pass(time.Minute)
				before := c.podUID("ns", failed)
				deposed := c.program
				for _, resource := range watched {
					deposed.process.Hold(resource)
				}
				c.startProgram()
				c.pass(time.Second)
				pod := goOn(c)
				for range 100 {
					c.runNodes(1)
					c.pass(time.Second)
				}
				running := c.podUID("ns", pod)
				if running == "" || running == before {
					t.Fatalf("the successor has the Pod %q, and there was %q before: want another", running, before)
				}
				c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Process == deposed.name && r.Subresource == "status" { // It writes on a connection that is no more.
						return apiserver.Fault{Refusal: apiserver.ConnectionLost()}
					}
					return apiserver.Fault{}
				})
				deposed.process.ExpireWatches("pods")
				deposed.process.ReleaseAll("pods")
				c.pass(10 * time.Second)
				c.killOther(deposed)
				c.pass(time.Minute)
				if got := c.podUID("ns", pod); got != running {
					t.Errorf("there is the Pod %q, want %q, which runs", got, running)
				}
			})
		})
	}
}

// TestWhatIsCreatedAfterTheEndIsDeleted: the request of a leader that has died arrives
// after its successor has completed the Framework.
func TestWhatIsCreatedAfterTheEndIsDeleted(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const late = 5 * time.Minute
		tries := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if !creates(r, "configmaps", "fw-") {
				return apiserver.Fault{}
			}
			if tries++; tries == 1 {
				return apiserver.Fault{Before: late, Late: true}
			}
			return apiserver.Fault{}
		})
		c.add("ns", "fw", map[string]int32{"w": 1})
		for tries < 1 {
			c.pass(time.Millisecond)
		}
		begun := time.Now()
		c.killProgram()
		c.startProgram()
		c.ends = func(*corev1.Pod) (int32, bool) { return 0, true }
		for range 10 {
			c.runNodes(1)
			c.pass(10 * time.Second)
		}
		if status := c.statusOf("ns", "fw"); status.State != frameworkv1.FrameworkCompleted {
			t.Fatalf("the Framework is %s, want it Completed before the request arrives", status.State)
		}
		created := false
		c.pass(late - time.Since(begun) - time.Second)
		c.server.SetObserver(func(w *apiserver.Written) {
			created = created || w.Resource == "configmaps" && w.Created()
		})
		c.pass(time.Minute)
		if !created {
			t.Fatal("the ConfigMap was not created: the test shows nothing")
		}
		if configMap := apiserver.Find[corev1.ConfigMap](c.server, "ns", "fw-attempt"); configMap != nil {
			t.Error("the ConfigMap is still there a minute after it was created")
		}
	})
}
