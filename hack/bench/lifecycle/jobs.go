// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// jobKind is a kind of jobs that is compared with gangs of Frameworks.
type jobKind struct {
	// name is what a figure calls them.
	name string
	// install has the API server serve them, and options are those of a controller that runs
	// them.
	install func(context.Context, *cluster) error
	options localenv.ControllerOptions
	// create creates a job of the tasks that gang has, which run for ever.
	create func(ctx context.Context, c *cluster, namespace, name string, tasks int) error
	// client and resource are where they are watched, and running is how many Pods a job says
	// that it runs.
	client   func(*cluster) rest.Interface
	resource string
	object   runtime.Object
	running  func(runtime.Object) (name string, pods int)
}

var volcanoJobs = jobKind{
	name:    "Volcano Jobs",
	install: func(ctx context.Context, c *cluster) error { return c.InstallVolcanoJobs(ctx) },
	options: localenv.WithVolcanoJobs(""),
	create: func(ctx context.Context, c *cluster, namespace, name string, tasks int) error {
		_, err := c.Lockstep.BatchV1alpha1().Jobs(namespace).Create(ctx, &batchv1alpha1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1alpha1.JobSpec{
				Tasks: []batchv1alpha1.TaskSpec{{Name: roleName, Replicas: int32(tasks), Template: gangTemplate()}},
			},
		}, metav1.CreateOptions{})
		return err
	},
	client: func(c *cluster) rest.Interface { return c.Lockstep.BatchV1alpha1().RESTClient() }, resource: "jobs", object: &batchv1alpha1.Job{},
	running: func(object runtime.Object) (string, int) {
		job := object.(*batchv1alpha1.Job)
		return job.Name, int(job.Status.Running)
	},
}

// tfJobs have a Service for each Pod, and tfJobsSharing one for all of them.
var (
	tfJobs        = trainingJobs("TFJobs", kubeflowv1.ServicesPerReplica)
	tfJobsSharing = trainingJobs("TFJobs with one Service", kubeflowv1.ServicesPerJob)
)

// trainingJobs are TFJobs that have Services of a mode.
func trainingJobs(name string, services kubeflowv1.ServiceMode) jobKind {
	return jobKind{
		name:    name,
		install: func(ctx context.Context, c *cluster) error { return c.InstallKubeflowJobs(ctx) },
		options: localenv.WithKubeflowJobs("takeJobs: All, services: " + string(services)),
		create: func(ctx context.Context, c *cluster, namespace, name string, tasks int) error {
			template, err := trainingTemplate()
			if err != nil {
				return err
			}
			_, err = c.Lockstep.KubeflowV1().TFJobs(namespace).Create(ctx, &kubeflowv1.TFJob{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: kubeflowv1.TFJobSpec{
					RunPolicy: kubeflowv1.RunPolicy{SchedulingPolicy: &kubeflowv1.SchedulingPolicy{}},
					TFReplicaSpecs: map[string]kubeflowv1.ReplicaSpec{
						kubeflowv1.ReplicaWorker: {Replicas: new(int32(tasks)), Template: template},
					},
				},
			}, metav1.CreateOptions{})
			return err
		},
		client: func(c *cluster) rest.Interface { return c.Lockstep.KubeflowV1().RESTClient() }, resource: "tfjobs", object: &kubeflowv1.TFJob{},
		running: func(object runtime.Object) (string, int) {
			job := object.(*kubeflowv1.TFJob)
			return job.Name, int(job.Status.ReplicaStatuses[kubeflowv1.ReplicaWorker].Active)
		},
	}
}

// gangTemplate is the template of the tasks that gang has.
func gangTemplate() runtime.RawExtension { return gang("", 1, 0).Spec.TaskRoles[0].Task.Pod }

// trainingTemplate is gangTemplate with the name that the container of a TFJob has to have, and
// without the restartPolicy that is for its replicas to say.
func trainingTemplate() (runtime.RawExtension, error) {
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal(gangTemplate().Raw, &template); err != nil {
		return runtime.RawExtension{}, err
	}
	template.Spec.Containers[0].Name, template.Spec.RestartPolicy = "tensorflow", ""
	raw, err := json.Marshal(&template)
	return runtime.RawExtension{Raw: raw}, err
}

// jobBaseline is what jobs are compared with.
type jobBaseline struct {
	name string
	run  func(ctx context.Context, c *cluster, n, tasks int) (time.Duration, error)
}

var gangsAlone = jobBaseline{
	name: "gangs of Frameworks",
	run: func(ctx context.Context, c *cluster, n, tasks int) (time.Duration, error) {
		return c.runFrameworks(ctx, gang, n, tasks)
	},
}

var gangsWithServices = jobBaseline{
	name: "gangs of Frameworks and their Services",
	run: func(ctx context.Context, c *cluster, n, tasks int) (took time.Duration, err error) {
		err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
			took, err = c.timed(ctx,
				func(ctx context.Context) error {
					if err := c.createServices(ctx, namespace, n, tasks); err != nil {
						return err
					}
					return c.createFrameworks(ctx, namespace, gang, n, tasks)
				},
				func(ctx context.Context) error { return c.waitRunning(ctx, namespace, n, tasks) })
			return err
		})
		return took, err
	},
}

// createServices creates a headless Service for each task of n Frameworks, before they are there:
// every name can be looked up when the first Pod runs.
func (c *cluster) createServices(ctx context.Context, namespace string, n, tasks int) error {
	return harness.Parallel(ctx, n*tasks, func(ctx context.Context, i int) error {
		framework, index := fmt.Sprintf("f%d", i/tasks), strconv.Itoa(i%tasks)
		_, err := c.Kube.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: framework + "-" + roleName + "-" + index},
			Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
				Selector: map[string]string{frameworkv1.KeyFrameworkName: framework, frameworkv1.KeyTaskIndex: index},
				Ports:    []corev1.ServicePort{{Port: 2222}},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// compareJobs measures n jobs, each of a number of tasks, against a baseline of gangs, from the first
// creation until all run, and holds the ratio to a bar. One controller runs both.
func compareJobs(ctx context.Context, b *harness.Bench, kind jobKind, baseline jobBaseline, n, tasks int, bar float64) error {
	up, err := b.Up(ctx, localenv.Options{SimulatedNodes: 1000, NodeCPU: "32", With: "scheduler"})
	if err != nil {
		return err
	}
	c := &cluster{Cluster: up}
	if err := kind.install(ctx, c); err != nil {
		return err
	}
	controller, err := c.StartController(ctx, kind.options)
	if err != nil {
		return err
	}
	if err := controller.WaitReady(ctx); err != nil {
		return err
	}
	return duel(ctx, b,
		contender{kind.name, func(ctx context.Context) (time.Duration, error) { return c.runJobs(ctx, kind, n, tasks) }},
		contender{baseline.name, func(ctx context.Context) (time.Duration, error) { return baseline.run(ctx, c, n, tasks) }},
		bar)
}

// runJobs is how long n jobs take.
func (c *cluster) runJobs(ctx context.Context, kind jobKind, n, tasks int) (took time.Duration, err error) {
	err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		took, err = c.timed(ctx,
			func(ctx context.Context) error {
				return harness.Parallel(ctx, n, func(ctx context.Context, i int) error {
					return kind.create(ctx, c, namespace, fmt.Sprintf("f%d", i), tasks)
				})
			},
			func(ctx context.Context) error { return c.waitJobsRunning(ctx, kind, namespace, n, tasks) })
		return err
	})
	return took, err
}

// waitJobsRunning watches until all Pods of n jobs run, by their statuses.
func (c *cluster) waitJobsRunning(ctx context.Context, kind jobKind, namespace string, n, tasks int) error {
	running := map[string]bool{}
	source := cache.NewListWatchFromClient(kind.client(c), kind.resource, namespace, fields.Everything())
	_, err := watchtools.UntilWithSync(ctx, source, kind.object, nil, func(event watch.Event) (bool, error) {
		if name, pods := kind.running(event.Object); pods == tasks {
			running[name] = true
		}
		return len(running) >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d %s run all their Pods: %w", len(running), n, kind.name, err)
	}
	return nil
}
