// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// mistyped is a template with a field that no API server knows, in a container of a name.
func mistyped(container string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"spec":{"restartPolicy":"Never","containers":[{"name":%q,"image":"busybox","resurces":{"limits":{"cpu":"1"}}}]}}`, container)}
}

// jobOf is a job of some kind with a mistyped template, as addMistyped has added it.
type jobOf struct {
	add  func(c *cluster)
	mend func(c *cluster)
	path string
}

// mistypedJobs are jobs of each kind, of one Pod, with the path of their mistyped field.
var mistypedJobs = map[string]jobOf{
	"a Framework": {
		add: func(c *cluster) {
			f := newFramework(1)
			f.Spec.TaskRoles[0].Task.Pod = mistyped("main")
			apiserver.Add(c.server, f)
		},
		mend: func(c *cluster) {
			apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
				f.Spec.TaskRoles[0].Task.Pod = newFramework(1).Spec.TaskRoles[0].Task.Pod
			})
		},
		path: "spec.taskRoles[0].task.pod.spec.containers[0].resurces",
	},
	"a Volcano Job": {
		add: func(c *cluster) {
			apiserver.Add(c.server, newJob(batchv1alpha1.TaskSpec{Replicas: 1, Template: mistyped("main")}))
		},
		path: "spec.tasks[0].template.spec.containers[0].resurces",
	},
	"a TFJob": {
		add: func(c *cluster) {
			job := newTFJob(map[string]int32{kubeflowv1.ReplicaWorker: 1})
			worker := job.Spec.TFReplicaSpecs[kubeflowv1.ReplicaWorker]
			worker.Template = mistyped("tensorflow")
			job.Spec.TFReplicaSpecs[kubeflowv1.ReplicaWorker] = worker
			apiserver.Add(c.server, job)
		},
		path: "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resurces",
	},
}

// allKinds has the controller run jobs of all kinds, and take or refuse unknown fields.
func allKinds(unknown configv1alpha1.UnknownFields) func(*cluster) {
	return func(c *cluster) {
		runJobs(c)
		runTraining(c)
		c.config.UnknownFields = &unknown
		// Two events of one object and one moment have the same name, and in the bubble no time passes by itself.
		c.onDryRun(apiserver.Fault{Before: 5 * time.Second})
	}
}

// onDryRun has a fault meet each question about a template.
func (c *cluster) onDryRun(fault apiserver.Fault) {
	c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Verb == apiserver.DryRun {
			return fault
		}
		return apiserver.Fault{}
	})
}

// warnings are the messages of the events with the reason UnknownFields, or that tell of it.
func (c *cluster) warnings() []string {
	var messages []string
	for _, event := range apiserver.All[corev1.Event](c.server, "ns") {
		if event.Type == corev1.EventTypeWarning && strings.Contains(event.Message, "unknown field") {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// dryRuns is how often the API server was asked about a template.
func (c *cluster) dryRuns() int {
	count := 0
	for _, entry := range c.server.Journal() {
		if entry.Verb == apiserver.DryRun {
			count++
		}
	}
	return count
}

func TestTheUserIsWarnedOfAFieldThatTheAPIServerDropsInSilence(t *testing.T) {
	for kind, job := range mistypedJobs {
		t.Run(kind, func(t *testing.T) {
			quiet(t)
			inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsWarn), func(t *testing.T, c *cluster) {
				job.add(c)
				c.await(t, "there is a Pod", func() bool { return len(apiserver.All[corev1.Pod](c.server, "ns")) == 1 })
				c.pass(time.Minute)
				if told := c.warnings(); len(told) != 1 || !strings.Contains(told[0], job.path+": unknown field") {
					t.Errorf("the warnings are %q, want one that names %s", told, job.path)
				}
				if n := c.dryRuns(); n != 1 {
					t.Errorf("the API server was asked %d times, want once", n)
				}
			})
		})
	}
}

func TestNoPodsAreMadeFromATemplateWithUnknownFieldsIfThoseAreRefused(t *testing.T) {
	for kind, job := range mistypedJobs {
		t.Run(kind, func(t *testing.T) {
			quiet(t)
			inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsRefuse), func(t *testing.T, c *cluster) {
				job.add(c)
				c.pass(2 * time.Minute)
				if names := c.podNames(); len(names) > 0 {
					t.Errorf("there are Pods: %q", names)
				}
				if told := c.warnings(); !slices.ContainsFunc(told, func(m string) bool { return strings.Contains(m, job.path+": unknown field") }) {
					t.Errorf("the warnings are %q, want one that names %s", told, job.path)
				}
				if job.mend == nil {
					return
				}
				job.mend(c)
				c.await(t, "Pods are made", func() bool { return len(c.podNames()) == 1 })
			})
		})
	}
}

// TestAConditionNamesUnknownFields for as long as there are some, and is left as it is by a new leader.
func TestAConditionNamesUnknownFields(t *testing.T) {
	inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsWarn), func(t *testing.T, c *cluster) {
		job := mistypedJobs["a Framework"]
		condition := func() *metav1.Condition {
			return meta.FindStatusCondition(c.statusOf("ns", "fw").Conditions, frameworkv1.ConditionUnknownFields)
		}
		job.add(c)
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		c.pass(time.Minute)
		told := condition()
		if told == nil || told.Message != job.path+": unknown field" {
			t.Fatalf("the condition is %+v", told)
		}
		c.server.ClearJournal()
		c.stop(t)
		c.startProgram()
		c.pass(time.Minute)
		if writes := c.writes(); len(writes) > 0 || len(c.warnings()) != 1 {
			t.Errorf("a new leader wrote %q, and the warnings are %q", writes, c.warnings())
		}
		job.mend(c)
		c.pass(time.Minute)
		if condition() != nil {
			t.Errorf("the condition is still there: %+v", condition())
		}
	})
}

// TestAnAPIServerThatCanNotTellHoldsNothingUp, even where unknown fields are refused.
func TestAnAPIServerThatCanNotTellHoldsNothingUp(t *testing.T) {
	hostile := map[string]apiserver.Fault{
		"it forbids the question": {Refusal: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)},
		"it is overloaded":        {Refusal: apierrors.NewTooManyRequests("later", 1)},
		"it does not answer":      {Before: time.Hour},
		"it fails":                {Refusal: apierrors.NewInternalError(fmt.Errorf("no dry runs"))},
	}
	for name, fault := range hostile {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsRefuse), func(t *testing.T, c *cluster) {
				c.onDryRun(fault)
				mistypedJobs["a Framework"].add(c)
				c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
				c.pass(time.Hour)
				if n := c.dryRuns(); n > 10 {
					t.Errorf("it was asked %d times in an hour", n)
				}
			})
		})
	}
}

// TestAnAPIServerThatCanNotTellAnyMoreLetsNoPodsBeMadeThatItHasRefused: what it has said before holds until it says something else.
func TestAnAPIServerThatCanNotTellAnyMoreLetsNoPodsBeMadeThatItHasRefused(t *testing.T) {
	quiet(t)
	inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsRefuse), func(t *testing.T, c *cluster) {
		mistypedJobs["a Framework"].add(c)
		c.pass(time.Minute)
		c.onDryRun(apiserver.Fault{Before: 5 * time.Second, Refusal: apierrors.NewTooManyRequests("later", 1)})
		asked := c.dryRuns()
		c.pass(2 * time.Hour)
		if names := c.podNames(); len(names) > 0 || c.dryRuns() == asked || len(c.warnings()) != 2 {
			t.Errorf("there are the Pods %q, it was asked %d times, and the warnings are %q", names, c.dryRuns(), c.warnings())
		}
	})
}

// TestTheTemplatesOfOneNamespaceHoldUpNoOther: where unknown fields are refused, Pods wait for the answer about their template,
// and a namespace may have thousands of templates.
func TestTheTemplatesOfOneNamespaceHoldUpNoOther(t *testing.T) {
	inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsRefuse), func(t *testing.T, c *cluster) {
		for i := range 50 {
			f := newFramework(1)
			f.Name, f.Namespace, f.Spec.TaskRoles[0].Task.Pod = fmt.Sprint("fw-", i), "busy", mistyped(fmt.Sprint("main-", i))
			apiserver.Add(c.server, f)
		}
		c.pass(time.Second)
		apiserver.Add(c.server, newFramework(1))
		c.pass(15 * time.Second)
		if names := c.podNames(); len(names) != 1 {
			t.Errorf("there are the Pods %q, want one after two questions of 5s", names)
		}
	})
}

// TestOnlyTheTemplatesThatAJobHasAreAskedAbout, however often they have changed while the API server was slow to answer.
func TestOnlyTheTemplatesThatAJobHasAreAskedAbout(t *testing.T) {
	inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsWarn), func(t *testing.T, c *cluster) {
		mistypedJobs["a Framework"].add(c)
		for i := range 20 {
			c.pass(100 * time.Millisecond)
			apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) {
				f.Spec.TaskRoles[0].Task.Pod = mistyped(fmt.Sprint("main-", i))
			})
		}
		c.pass(10 * time.Minute)
		if n := c.dryRuns(); n > 4 {
			t.Errorf("the API server was asked %d times about 21 templates that came within 2s, want no more than 2 times in 5s", n)
		}
	})
}

// TestUnknownFieldsOfManyRolesAreToldAtOnce: answers come one by one, and are one event.
func TestUnknownFieldsOfManyRolesAreToldAtOnce(t *testing.T) {
	inClusterWith(t, allKinds(configv1alpha1.UnknownFieldsWarn), func(t *testing.T, c *cluster) {
		f := newFramework(1)
		for i := range 9 {
			role := *f.Spec.TaskRoles[0].DeepCopy()
			role.Name, role.Task.Pod = fmt.Sprint("role-", i), mistyped(fmt.Sprint("main-", i))
			f.Spec.TaskRoles = append(f.Spec.TaskRoles, role)
		}
		apiserver.Add(c.server, f)
		c.pass(5 * time.Minute)
		if told := c.warnings(); len(told) != 1 || !strings.HasSuffix(told[0], "; and 5 more") {
			t.Errorf("the warnings are %q, want one of 9 fields", told)
		}
	})
}

// TestEqualTemplatesAreAskedAboutOnce: a thousand jobs of one template are one question, and so are a thousand syncs.
func TestEqualTemplatesAreAskedAboutOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for i := range 20 {
			f := newFramework(2)
			f.Name = fmt.Sprint("fw-", i)
			f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinSucceededTaskCount = ptr.To[int32](2)
			apiserver.Add(c.server, f)
		}
		c.ends = succeed
		c.awaitState(t, "fw-19", frameworkv1.FrameworkCompleted)
		c.pass(time.Hour)
		if n := c.dryRuns(); n != 1 {
			t.Errorf("the API server was asked %d times, want once", n)
		}
	})
}
