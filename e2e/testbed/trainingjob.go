// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv1alpha2 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1alpha2"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TrainingKind is a kind of Kubeflow's jobs, in a version of the API.
type TrainingKind struct {
	version, kind, plural string
	// container is the one that trains.
	container string
}

// Kinds of Kubeflow's jobs. TFJobV1alpha2 is a TFJob that is made through v1alpha2.
var (
	TFJob         = TrainingKind{kubeflowv1.SchemeGroupVersion.Version, kubeflowv1.TFJobKind, "tfjobs", "tensorflow"}
	TFJobV1alpha2 = TrainingKind{kubeflowv1alpha2.SchemeGroupVersion.Version, kubeflowv1.TFJobKind, "tfjobs", "tensorflow"}
	PyTorchJob    = TrainingKind{kubeflowv1.SchemeGroupVersion.Version, kubeflowv1.PyTorchJobKind, "pytorchjobs", "pytorch"}
	XGBoostJob    = TrainingKind{kubeflowv1.SchemeGroupVersion.Version, kubeflowv1.XGBoostJobKind, "xgboostjobs", "xgboost"}
	PaddleJob     = TrainingKind{kubeflowv1.SchemeGroupVersion.Version, kubeflowv1.PaddleJobKind, "paddlejobs", "paddle"}
	JAXJob        = TrainingKind{kubeflowv1.SchemeGroupVersion.Version, kubeflowv1.JAXJobKind, "jaxjobs", "jax"}
	MPIJob        = TrainingKind{kubeflowv2beta1.SchemeGroupVersion.Version, kubeflowv2beta1.MPIJobKind, "mpijobs", "mpi"}
)

// TrainingJob is a training job of a test.
type TrainingJob struct {
	trackedJob[kubeflowv1.JobStatus]

	kind TrainingKind
	// client knows the job by the version that is stored.
	client dynamic.ResourceInterface
}

// GivenTrainingJob makes a job j of a spec, in a namespace of its own.
func (c *Cluster) GivenTrainingJob(t testing.TB, kind TrainingKind, spec string) *TrainingJob {
	t.Helper()
	return c.CreateTrainingJob(t, c.Namespace(t), kind, "j", spec, nil)
}

// CreateTrainingJob makes a job. In its spec, which is in YAML, @ stands for a template as in
// CreateVolcanoJob, with the container that trains and no restartPolicy. Besides,
//
//	@?    nothing happens to the Pod but what the test does to it: see Run, End and the like
//
// The Pods go to the nodes of a room if there is one.
func (c *Cluster) CreateTrainingJob(t testing.TB, namespace string, kind TrainingKind, name, spec string, room *Room) *TrainingJob {
	t.Helper()
	j := &TrainingJob{kind: kind, client: c.trainingJobs(t, namespace, kind, kind.storedVersion())}
	j.Namespace, j.Name, j.t, j.cluster, j.describe = namespace, name, t, c, describeTraining
	list, err := j.client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.follow(Watch(t, list, j.client.Watch), readTrainingJob)
	created, err := c.trainingJobs(t, namespace, kind, kind.version).Create(t.Context(), kind.manifest(t, name, spec, room), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.UID = created.GetUID()
	return j
}

// storedVersion is the version by which jobs of the kind are followed.
func (k TrainingKind) storedVersion() string {
	if k == MPIJob {
		return k.version
	}
	return kubeflowv1.SchemeGroupVersion.Version
}

// trainingJobs is a client of the jobs of a kind, by a version of the API.
func (c *Cluster) trainingJobs(t testing.TB, namespace string, kind TrainingKind, version string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	resource := kubeflowv1.SchemeGroupVersion.WithResource(kind.plural)
	resource.Version = version
	return client.Resource(resource).Namespace(namespace)
}

// manifest is a job of a spec.
func (k TrainingKind) manifest(t testing.TB, name, spec string, room *Room) *unstructured.Unstructured {
	t.Helper()
	job := &unstructured.Unstructured{Object: map[string]any{}}
	var content map[string]any
	expanded := expandTemplates(spec, k.container, "", room)
	if err := yaml.Unmarshal([]byte(expanded), &content); err != nil {
		t.Fatalf("the spec %s: %v", expanded, err)
	}
	job.Object["spec"] = wholeNumbers(content)
	job.SetAPIVersion(kubeflowv1.GroupName + "/" + k.version)
	job.SetKind(k.kind)
	job.SetName(name)
	return job
}

// wholeNumbers has the numbers of a decoded text as objects of the API have them.
func wholeNumbers(value any) any {
	switch value := value.(type) {
	case float64:
		return int64(value)
	case map[string]any:
		for key := range value {
			value[key] = wholeNumbers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = wholeNumbers(value[i])
		}
	}
	return value
}

// readTrainingJob takes a job apart. It has no status before anything is in it.
func readTrainingJob(object runtime.Object) (metav1.Object, *kubeflowv1.JobStatus) {
	job, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	stored, _, _ := unstructured.NestedMap(job.Object, "status")
	if len(stored) == 0 {
		return job, nil
	}
	status := &kubeflowv1.JobStatus{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored, status); err != nil {
		return job, nil
	}
	return job, status
}

// describeConditions is a status's conditions in their order, such as "Created !Running
// Suspended": one that is False has a !, and one that is Unknown a ? before its type.
func describeConditions(s *kubeflowv1.JobStatus) string {
	var all []string
	for _, c := range s.Conditions {
		all = append(all, map[corev1.ConditionStatus]string{corev1.ConditionFalse: "!", corev1.ConditionUnknown: "?"}[c.Status]+string(c.Type))
	}
	return strings.Join(all, " ")
}

func describeTraining(stored []kubeflowv1.JobStatus) string {
	if len(stored) == 0 {
		return "no status"
	}
	var passed []string
	for i := range stored {
		if now := fmt.Sprintf("[%s]", describeConditions(&stored[i])); len(passed) == 0 || passed[len(passed)-1] != now {
			passed = append(passed, now)
		}
	}
	last := stored[len(stored)-1]
	message := ""
	if n := len(last.Conditions); n > 0 {
		message = last.Conditions[n-1].Message
	}
	return fmt.Sprintf("%s, phase %s, %+v%+v: %s", strings.Join(passed, " "), last.Phase, last.ReplicaStatuses, last.TFReplicaStatuses, message)
}

// Passes waits until the conditions of the job have been so, one after the other, since those
// that Passes has waited for before: "Created Running", "Created !Running Succeeded". Others
// may come between them.
func (j *TrainingJob) Passes(conditions ...string) *TrainingJob {
	j.t.Helper()
	for _, want := range conditions {
		j.waitPassed(fmt.Sprintf("job %s to have the conditions [%s]", j.Name, want), func(s *kubeflowv1.JobStatus) bool { return describeConditions(s) == want })
	}
	return j
}

// Has waits until the last status has these conditions.
func (j *TrainingJob) Has(conditions string) *TrainingJob {
	j.t.Helper()
	return j.Is(fmt.Sprintf("have the conditions [%s]", conditions), func(s *kubeflowv1.JobStatus) bool { return describeConditions(s) == conditions })
}

// Never wants no condition of a type to have been True until now.
func (j *TrainingJob) Never(condition kubeflowv1.JobConditionType) *TrainingJob {
	j.t.Helper()
	for _, s := range j.Statuses() {
		if c := ConditionOf(&s, condition); c != nil && c.Status == corev1.ConditionTrue {
			j.t.Errorf("job %s was %s: %s", j.Name, condition, describeTraining(j.Statuses()))
			break
		}
	}
	return j
}

// ConditionOf is the condition of a type. Nil if there is none.
func ConditionOf(s *kubeflowv1.JobStatus, t kubeflowv1.JobConditionType) *kubeflowv1.JobCondition {
	i := slices.IndexFunc(s.Conditions, func(c kubeflowv1.JobCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// PodCounts are the Pods that a status counts of a type.
type PodCounts struct{ Active, Succeeded, Failed int32 }

// Counts waits until the status counts the Pods of a type so.
func (j *TrainingJob) Counts(replicas string, want PodCounts) *TrainingJob {
	j.t.Helper()
	return j.Is(fmt.Sprintf("count %+v of %s", want, replicas), func(s *kubeflowv1.JobStatus) bool { return podCountsOf(s, replicas) == want })
}

// podCountsOf are the Pods that a status counts of a type, whatever the version.
func podCountsOf(s *kubeflowv1.JobStatus, replicas string) PodCounts {
	of, ok := s.TFReplicaStatuses[replicas]
	if !ok {
		of = s.ReplicaStatuses[replicas]
	}
	return PodCounts{of.Active, of.Succeeded, of.Failed}
}

// InPhase waits until the job is in a phase.
func (j *TrainingJob) InPhase(phase kubeflowv1.JobPhase) *TrainingJob {
	j.t.Helper()
	return j.Is("be "+string(phase), func(s *kubeflowv1.JobStatus) bool { return s.Phase == phase })
}

// Is waits until the last status fulfils a condition, which what tells.
func (j *TrainingJob) Is(what string, condition func(*kubeflowv1.JobStatus) bool) *TrainingJob {
	j.t.Helper()
	j.waitStatus(fmt.Sprintf("job %s to %s", j.Name, what), condition)
	return j
}

// Stays wants nothing of the conditions and the Pods of the job to change for a time.
func (j *TrainingJob) Stays(d time.Duration) *TrainingJob {
	j.t.Helper()
	status := j.Status()
	conditions, pods := describeConditions(&status), j.UIDs()
	Consistently(j.t, fmt.Sprintf("job %s stays [%s] with its %d Pods", j.Name, conditions, len(pods)), d, func(context.Context) (bool, string, error) {
		status := j.Status()
		return describeConditions(&status) == conditions && maps.Equal(j.UIDs(), pods), describeTraining(j.Statuses()), nil
	})
	return j
}

// HasPods waits until the job has these Pods and no others.
func (j *TrainingJob) HasPods(names ...string) *TrainingJob {
	j.t.Helper()
	j.waitPods(names)
	return j
}

// Services are those that the job controls, by name.
func (j *TrainingJob) Services() map[string]*corev1.Service {
	j.t.Helper()
	list, err := j.cluster.Kube.CoreV1().Services(j.Namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	services := map[string]*corev1.Service{}
	for i := range list.Items {
		if j.controls(&list.Items[i]) {
			services[list.Items[i].Name] = &list.Items[i]
		}
	}
	return services
}

// HasServices waits until the job has these Services and no others.
func (j *TrainingJob) HasServices(names ...string) *TrainingJob {
	j.t.Helper()
	names = slices.Sorted(slices.Values(names))
	Eventually(j.t, fmt.Sprintf("job %s to have the Services %v", j.Name, names), func(context.Context) (bool, string, error) {
		have := slices.Sorted(maps.Keys(j.Services()))
		return slices.Equal(have, names), fmt.Sprint(have), nil
	})
	return j
}

// HasPairs waits until the job has Pods of these names, a Service for each, and no others.
func (j *TrainingJob) HasPairs(names ...string) *TrainingJob {
	j.t.Helper()
	return j.HasPods(names...).HasServices(names...)
}

// PodGroup is the gang of a start of the job, once it is there.
func (j *TrainingJob) PodGroup(start int) *schedulingv1alpha1.PodGroup {
	j.t.Helper()
	name := fmt.Sprintf("%s-%s-%d", j.Name, strings.ToLower(j.kind.kind), start)
	return j.cluster.WaitPodGroup(j.t, j.Namespace, name, "be there", func(*schedulingv1alpha1.PodGroup) bool { return true })
}

// PodGroups are the names of the gangs that the job controls.
func (j *TrainingJob) PodGroups() []string {
	j.t.Helper()
	list, err := j.cluster.Lockstep.SchedulingV1alpha1().PodGroups(j.Namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if j.controls(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// Autoscaler is what scales the workers. Nil if nothing does.
func (j *TrainingJob) Autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	j.t.Helper()
	scaler, err := j.cluster.Kube.AutoscalingV2().HorizontalPodAutoscalers(j.Namespace).Get(j.t.Context(), j.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		j.t.Fatal(err)
	}
	return scaler
}

// IsScaled waits until an autoscaler scales the workers, or until none does.
func (j *TrainingJob) IsScaled(want bool) *TrainingJob {
	j.t.Helper()
	Eventually(j.t, fmt.Sprintf("an autoscaler of job %s: %t", j.Name, want), func(context.Context) (bool, string, error) {
		return (j.Autoscaler() != nil) == want, "", nil
	})
	return j
}

// Change changes the job by a merge patch, as kubectl patch does.
func (j *TrainingJob) Change(patch string) *TrainingJob {
	j.t.Helper()
	if err := j.TryChange(patch); err != nil {
		j.t.Fatalf("the patch %s: %v", patch, err)
	}
	return j
}

// TryChange is Change for what may be refused.
func (j *TrainingJob) TryChange(patch string) error {
	j.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		j.t.Fatalf("the patch %s: %v", patch, err)
	}
	_, err = j.client.Patch(j.t.Context(), j.Name, types.MergePatchType, raw, metav1.PatchOptions{})
	return err
}

// WriteStatus merges a patch into the status, as another controller does.
func (j *TrainingJob) WriteStatus(manager, patch string) *TrainingJob {
	j.t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("{status: " + patch + "}"))
	if err != nil {
		j.t.Fatalf("the patch %s: %v", patch, err)
	}
	if _, err := j.client.Patch(j.t.Context(), j.Name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager}, "status"); err != nil {
		j.t.Fatal(err)
	}
	return j
}

// Owner is what makes the job the controller of an object.
func (j *TrainingJob) Owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: kubeflowv1.SchemeGroupVersion.String(), Kind: j.kind.kind, Name: j.Name, UID: j.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

// Remove deletes the job, as kubectl does.
func (j *TrainingJob) Remove() {
	j.t.Helper()
	background := metav1.DeletePropagationBackground
	if err := j.client.Delete(j.t.Context(), j.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		j.t.Fatal(err)
	}
}

// Kill deletes a Pod of the job, as a user or a drain does.
func (j *TrainingJob) Kill(pod string) *TrainingJob {
	j.t.Helper()
	j.cluster.DeletePod(j.t, j.Namespace, pod)
	return j
}

// KillService deletes a Service of the job.
func (j *TrainingJob) KillService(name string) *TrainingJob {
	j.t.Helper()
	if err := j.cluster.Kube.CoreV1().Services(j.Namespace).Delete(j.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		j.t.Fatal(err)
	}
	return j
}

// Tells waits until an event of the job has a type, a reason, and a text in its message.
func (j *TrainingJob) Tells(kind, reason, text string) *TrainingJob {
	j.t.Helper()
	j.waitEvent(kind, reason, text)
	return j
}

// Told is how often the job has told of a reason until now.
func (j *TrainingJob) Told(reason string) int {
	j.t.Helper()
	n := 0
	for _, e := range j.Events() {
		if e.Reason == reason {
			n += max(1, int(e.Count))
		}
	}
	return n
}

// EnvOf is the value that a variable has in a container of a Pod: the last one counts. A
// variable that is not set is not ok.
func EnvOf(pod *corev1.Pod, container, name string) (value string, ok bool) {
	for _, c := range pod.Spec.Containers {
		if c.Name != container {
			continue
		}
		for _, env := range c.Env {
			if env.Name == name {
				value, ok = env.Value, true
			}
		}
	}
	return value, ok
}
