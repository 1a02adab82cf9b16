// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden traces in testdata")

const podTemplate = `{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`

// framework makes a Framework of roles.
func framework(roles ...frameworkv1.TaskRoleSpec) *frameworkv1.Framework {
	return &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "fw", Namespace: "ns", Generation: 1},
		Spec:       frameworkv1.FrameworkSpec{ExecutionType: frameworkv1.ExecutionStart, TaskRoles: roles},
	}
}

func role(name string, number int32) frameworkv1.TaskRoleSpec {
	return frameworkv1.TaskRoleSpec{
		Name:       name,
		TaskNumber: number,
		Task: frameworkv1.TaskSpec{
			Pod:                           runtime.RawExtension{Raw: []byte(podTemplate)},
			PodGracefulDeletionTimeoutSec: ptr.To[int64](600),
		},
	}
}

// trace records what is written and done between the steps of a story.
type trace struct {
	*world
	text strings.Builder
}

func newTrace(t *testing.T, framework *frameworkv1.Framework) *trace {
	tr := &trace{world: newWorld(t, framework)}
	tr.onWrite = func(_, after *frameworkv1.FrameworkStatus) {
		fmt.Fprintf(&tr.text, "  write %s\n", transcript(after))
	}
	tr.onAction = func(action Action) { fmt.Fprintf(&tr.text, "  do    %s\n", inWords(action)) }
	return tr
}

// step does something to the world and lets the controller react.
func (tr *trace) step(title string, do func()) {
	fmt.Fprintf(&tr.text, "%s\n", title)
	if do != nil {
		do()
	}
	tr.run()
}

func (tr *trace) start() { tr.step("The Framework is created.", nil) }

func (tr *trace) phase(phase corev1.PodPhase, exitCode int32, names ...string) {
	tr.step(fmt.Sprintf("%s: %s, exit code %d.", strings.Join(names, ", "), phase, exitCode), func() {
		for _, name := range names {
			tr.setPhase("fw-"+name, phase, exitCode)
		}
	})
}

func (tr *trace) gone(names ...string) {
	tr.step(strings.Join(names, ", ")+": gone.", func() {
		for _, name := range names {
			tr.endPod("fw-" + name)
		}
	})
}

func (tr *trace) gc() { tr.step("The garbage collector works.", tr.collectGarbage) }

func (tr *trace) later(span time.Duration) {
	tr.step(fmt.Sprintf("%v later.", span), func() { tr.now = tr.now.Add(span) })
}

func (tr *trace) stop() {
	tr.step("The user stops the Framework.", tr.world.stop)
}

func (tr *trace) scale(role int, number int32) {
	tr.step(fmt.Sprintf("Role %s is scaled to %d.", tr.framework.Spec.TaskRoles[role].Name, number), func() {
		tr.framework.Spec.TaskRoles[role].TaskNumber = number
	})
}

func TestTraces(t *testing.T) {
	fancy := frameworkv1.RetryPolicySpec{FancyRetryPolicy: true}
	tests := map[string]struct {
		framework *frameworkv1.Framework
		story     func(*trace)
	}{
		"two tasks succeed": {
			framework: framework(role("w", 2)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0", "w-1")
				tr.phase(corev1.PodSucceeded, 0, "w-0")
				tr.gone("w-0")
				tr.phase(corev1.PodSucceeded, 0, "w-1")
				tr.gone("w-1")
				tr.gc()
				tr.later(31 * 24 * time.Hour)
			},
		},
		"the first success completes the attempt": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 2))
				f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinSucceededTaskCount = ptr.To[int32](1)
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0", "w-1")
				tr.phase(corev1.PodSucceeded, 0, "w-0")
				tr.gone("w-0")
				tr.gone("w-1")
				tr.gc()
			},
		},
		"a task is retried once": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.TaskRoles[0].Task.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: true, MaxRetryCount: 1}
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodFailed, 1, "w-0")
				tr.gone("w-0")
				tr.phase(corev1.PodFailed, 1, "w-0")
				tr.gone("w-0")
				tr.gc()
			},
		},
		"a task that fails again and again is delayed": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.TaskRoles[0].Task.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				for _, delay := range []time.Duration{0, 1, 2, 4} {
					tr.later(2 * time.Second)
					tr.phase(corev1.PodFailed, 200, "w-0")
					tr.gone("w-0")
					if delay > 0 {
						tr.later(delay * time.Second)
					}
				}
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.later(10 * time.Minute)
				tr.phase(corev1.PodFailed, 200, "w-0")
				tr.gone("w-0")
			},
		},
		"a task that ends at once again and again is delayed in every policy": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				for _, most := range []time.Duration{0, 2, 4, 8} {
					tr.phase(corev1.PodSucceeded, 0, "w-0")
					tr.gone("w-0")
					if most > 0 {
						tr.later(most * time.Second)
					}
				}
				tr.later(2 * time.Second)
				tr.phase(corev1.PodSucceeded, 0, "w-0")
				tr.gone("w-0")
			},
		},
		"an attempt whose Pods are refused is delayed": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1), role("v", 1))
				f.Spec.RetryPolicy.MaxRetryCount = 3
				f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(`{"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}}`)
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.later(time.Minute) // v-0 takes its time to end.
				tr.gone("v-0")
				tr.gc()
				tr.later(time.Second)
				tr.gone("v-0")
				tr.gc()
			},
		},
		"stopped in a conflict delay": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodFailed, 201, "w-0")
				tr.gone("w-0")
				tr.gc()
				tr.stop()
			},
		},
		"stopped while running": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.stop()
				tr.gone("w-0")
				tr.gc()
			},
		},
		"created, then started": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.ExecutionType = frameworkv1.ExecutionCreate
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.scale(0, 2)
				tr.scale(0, 1)
				tr.step("The user starts the Framework.", func() {
					tr.framework.Spec.ExecutionType = frameworkv1.ExecutionStart
				})
			},
		},
		"created, then stopped": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.ExecutionType = frameworkv1.ExecutionCreate
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.stop()
			},
		},
		"scaled down and up before the Pod is gone": {
			framework: framework(role("w", 2)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0", "w-1")
				tr.scale(0, 1)
				tr.scale(0, 2)
				tr.gone("w-1")
			},
		},
		"scaled to zero": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.scale(0, 0)
				tr.gone("w-0")
			},
		},
		"a role goes and another comes": {
			framework: framework(role("a", 1), role("b", 1), role("c", 1)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "a-0", "b-0", "c-0")
				tr.step("Role a leaves the spec, role d joins it.", func() {
					tr.framework.Spec.TaskRoles = append(tr.framework.Spec.TaskRoles[1:], role("d", 1))
				})
				tr.gone("a-0")
			},
		},
		"the user deletes a Pod": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.TaskRoles[0].Task.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.step("The user deletes w-0.", func() { tr.deletePod("fw-w-0", 30) })
				tr.gone("w-0")
			},
		},
		"the user deletes the ConfigMap": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.step("The user deletes the ConfigMap.", tr.deleteConfigMap)
				tr.gone("w-0")
				tr.gc()
			},
		},
		"the API server refuses a Pod": {
			framework: framework(role("w", 2)),
			story: func(tr *trace) {
				tr.refuse = func(pod *corev1.Pod) error {
					if pod.Name != "fw-w-0" {
						return nil
					}
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, nil)
				}
				tr.start()
				tr.gone("w-1")
				tr.gc()
			},
		},
		"the quota is exceeded for a while": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.refuse = func(pod *corev1.Pod) error {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New("exceeded quota: q"))
				}
				tr.start()
				tr.step("There is room again.", func() { tr.refuse = nil })
			},
		},
		"a template that is no Pod": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1), role("v", 1))
				f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(`{"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}}`)
				f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](-1)
				return f
			}(),
			story: func(tr *trace) { tr.start() },
		},
		"a Pod that does not end is deleted by force": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.stop()
				tr.later(10 * time.Minute)
				tr.gc()
			},
		},
		"a crash before the created ConfigMap is recorded": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.crashAfter = 2 // The status and the ConfigMap are written.
				tr.start()
				tr.gc()
			},
		},
		"a crash before the attempt is recorded": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.writeFrom = PersistSoon // What gates nothing waits.
				tr.start()
				tr.step("The controller crashes.", tr.crash)
				tr.later(10 * time.Minute)
				tr.gc()
			},
		},
		"a crash before the created Pod is recorded": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.crashAfter = 4 // Twice the status, the ConfigMap and the Pod are written.
				tr.start()
				tr.gone("w-0")
			},
		},
		"a Pod that ended while no controller ran is adopted": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 1))
				f.Spec.TaskRoles[0].Task.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.writeFrom = PersistSoon // What gates nothing waits.
				tr.start()
				tr.step("The controller crashes, and the Pod ends.", func() {
					tr.crash()
					tr.now = tr.now.Add(time.Minute)
					tr.setPhase("fw-w-0", corev1.PodFailed, 200)
				})
				tr.gone("w-0")
			},
		},
		"a Pod of another task is not adopted": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.writeFrom = PersistSoon
				tr.start()
				tr.step("The controller crashes, and somebody changes whose Pod it is.", func() {
					tr.crash()
					tr.pods["fw-w-0"].Annotations[frameworkv1.KeyTaskUID] = "another"
					tr.podChanged(tr.pods["fw-w-0"])
				})
				tr.gone("w-0")
			},
		},
		"a controller that begins with an old status": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.step("Another one takes over, with a status from before the attempt was recorded.", func() {
					old := tr.written.DeepCopy()
					old.State, old.AttemptStatus.ConfigMapUID, old.AttemptStatus.InstanceUID = frameworkv1.FrameworkAttemptCreationPending, nil, nil
					task := old.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]
					task.State, task.InstanceUID, task.AttemptStatus.PodUID = frameworkv1.TaskAttemptCreationPending, "older", nil
					tr.controller = tr.remembered(old)
				})
			},
		},
		"the user deletes the ConfigMap in the background": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 2))
				f.Spec.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0", "w-1")
				tr.step("The user deletes the ConfigMap in the background.", tr.deleteConfigMapInBackground)
				tr.gone("w-0")
				tr.gone("w-1")
			},
		},
		"labels are taken from ConfigMap and Pod": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.step("The ConfigMap loses its label.", tr.hideConfigMap)
				tr.step("The Pod loses its label.", func() { tr.hidePod("fw-w-0") })
				tr.phase(corev1.PodSucceeded, 0, "w-0")
			},
		},
		"the clock of the API server is an hour ahead": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0")
				tr.step("The user deletes w-0.", func() {
					tr.deletePod("fw-w-0", 30)
					tr.pods["fw-w-0"].DeletionTimestamp.Time = tr.now.Add(-time.Hour)
					tr.podChanged(tr.pods["fw-w-0"])
				})
				tr.later(9 * time.Minute)
				tr.later(time.Minute)
			},
		},
		"a created Pod is gone before it was seen": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.prompt = false
				tr.start()
				tr.step("The ConfigMap is seen.", func() { tr.deliver(configMapKind, 1) })
				tr.step("The Pod is deleted, and comes and goes in the cache.", func() {
					tr.deletePod("fw-w-0", 30)
					tr.endPod("fw-w-0")
					tr.deliverAll()
				})
			},
		},
		"a created ConfigMap is not seen in time, but is there": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.prompt = false
				tr.start()
				tr.later(5 * time.Minute)
			},
		},
		"a created ConfigMap is not seen in time": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.prompt = false
				tr.start()
				tr.step("The ConfigMap is gone, which nobody has seen.", func() { tr.configMap = nil })
				tr.later(5 * time.Minute)
				tr.gc()
				tr.later(time.Minute)
			},
		},
		"an older ConfigMap of the same name is seen first": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.prompt = false
				tr.start()
				tr.step("The cache shows a ConfigMap that is gone already.", func() {
					tr.cache.configMap = tr.configMap.DeepCopy()
					tr.cache.configMap.UID = tr.NewUID()
				})
				tr.step("The cache shows the one of the attempt.", func() { tr.deliver(configMapKind, 1) })
			},
		},
		"a created Pod is not seen in time, but is there": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.prompt = false
				tr.start()
				tr.step("The ConfigMap is seen.", func() { tr.deliver(configMapKind, 1) })
				tr.later(5 * time.Minute)
			},
		},
		"a created Pod is not seen in time": {
			framework: framework(role("w", 1)),
			story: func(tr *trace) {
				tr.prompt = false
				tr.start()
				tr.step("The ConfigMap is seen.", func() { tr.deliver(configMapKind, 1) })
				tr.step("The Pod is gone, which nobody has seen.", func() { delete(tr.pods, "fw-w-0") })
				tr.later(5 * time.Minute)
				tr.gc()
			},
		},
		"a gang waits too long": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 2))
				f.Spec.Gang = &frameworkv1.GangSpec{ScheduleTimeoutSeconds: ptr.To[int32](60)}
				f.Spec.RetryPolicy = fancy
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.step("The scheduler finds no place.", func() {
					tr.podGroup.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{
						Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue,
						Reason: schedulingv1alpha1.ReasonNotEnoughResources, Message: "1 of 2 can be placed",
					}}
					tr.podGroupChanged()
				})
				tr.later(time.Minute)
				tr.gone("w-0", "w-1")
				tr.gc()
			},
		},
		"a gang is scaled": {
			framework: func() *frameworkv1.Framework {
				f := framework(role("w", 2))
				f.Spec.Gang = &frameworkv1.GangSpec{}
				return f
			}(),
			story: func(tr *trace) {
				tr.start()
				tr.phase(corev1.PodRunning, 0, "w-0", "w-1")
				tr.scale(0, 3)
				tr.scale(0, 1)
				tr.gone("w-1", "w-2")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTrace(t, tc.framework)
			tc.story(tr)
			path := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(name)+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(tr.text.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), tr.text.String()); diff != "" {
				t.Errorf("unexpected trace (-want +got):\n%s", diff)
			}
		})
	}
}
