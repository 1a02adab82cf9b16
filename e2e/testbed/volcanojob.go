// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// VolcanoJob is a Volcano Job of a test.
type VolcanoJob struct {
	trackedJob[batchv1alpha1.JobStatus]
}

// GivenVolcanoJob makes a Job j of a spec, in a namespace of its own.
func (c *Cluster) GivenVolcanoJob(t testing.TB, spec string) *VolcanoJob {
	t.Helper()
	return c.CreateVolcanoJob(t, c.Namespace(t), "j", spec, nil)
}

// CreateVolcanoJob makes a Job. In its spec, which is in YAML, @ stands for a template whose Pod
// behaves so on a simulated node:
//
//	@∞      it runs for ever
//	@2      it ends after two seconds with exit code 0
//	@2→1    it ends after two seconds with exit code 1
//	@∞/3    it requests three cores
//	@∞{…}   its spec has these fields, too
//
// The Pods go to the nodes of a room if there is one.
func (c *Cluster) CreateVolcanoJob(t testing.TB, namespace, name, spec string, room *Room) *VolcanoJob {
	t.Helper()
	j := &VolcanoJob{trackedJob[batchv1alpha1.JobStatus]{Namespace: namespace, Name: name, t: t, cluster: c, describe: describeStored}}
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(expandTemplates(spec, "c", "restartPolicy: Never", room)), &job.Spec); err != nil {
		t.Fatalf("the spec %s: %v", spec, err)
	}
	client := c.Lockstep.BatchV1alpha1().Jobs(namespace)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.follow(Watch(t, list, client.Watch), readVolcanoJob)
	created, err := client.Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.UID = created.UID
	return j
}

// readVolcanoJob takes a Job apart. It has no status before it has a phase.
func readVolcanoJob(object runtime.Object) (metav1.Object, *batchv1alpha1.JobStatus) {
	job, ok := object.(*batchv1alpha1.Job)
	switch {
	case !ok:
		return nil, nil
	case job.Status.State.Phase == "":
		return job, nil
	}
	return job, &job.Status
}

// Phases are those that the Job has had, one after the other.
func (j *VolcanoJob) Phases() []batchv1alpha1.JobPhase {
	var phases []batchv1alpha1.JobPhase
	for _, status := range j.Statuses() {
		if len(phases) == 0 || phases[len(phases)-1] != status.State.Phase {
			phases = append(phases, status.State.Phase)
		}
	}
	return phases
}

// Passes waits until the Job has passed these phases, in this order, since those that Passes
// has waited for before. Others may come between them.
func (j *VolcanoJob) Passes(phases ...batchv1alpha1.JobPhase) *VolcanoJob {
	j.t.Helper()
	for _, phase := range phases {
		j.waitPassed(fmt.Sprintf("Job %s to be %s", j.Name, phase), func(s *batchv1alpha1.JobStatus) bool { return s.State.Phase == phase })
	}
	return j
}

// Never wants the Job not to have had these phases until now.
func (j *VolcanoJob) Never(phases ...batchv1alpha1.JobPhase) *VolcanoJob {
	j.t.Helper()
	had := j.Phases()
	for _, phase := range phases {
		if slices.Contains(had, phase) {
			j.t.Errorf("Job %s has passed %v, want no %s", j.Name, had, phase)
		}
	}
	return j
}

func describeStored(stored []batchv1alpha1.JobStatus) string {
	if len(stored) == 0 {
		return "no status"
	}
	var passed []string
	for i, status := range stored {
		if i == 0 || status.State.Phase != stored[i-1].State.Phase {
			passed = append(passed, string(status.State.Phase))
		}
	}
	last := stored[len(stored)-1]
	return fmt.Sprintf("%s, %+v, because of %s: %s", strings.Join(passed, " "), VolcanoTallyOf(&last), last.State.Reason, last.State.Message)
}

// VolcanoTally is what a Job counts.
type VolcanoTally struct {
	Pending, Running, Succeeded, Failed, Terminating, Retries int32
}

// VolcanoTallyOf is what a status counts.
func VolcanoTallyOf(s *batchv1alpha1.JobStatus) VolcanoTally {
	return VolcanoTally{s.Pending, s.Running, s.Succeeded, s.Failed, s.Terminating, s.RetryCount}
}

// Counts waits until the status counts so.
func (j *VolcanoJob) Counts(want VolcanoTally) *VolcanoJob {
	j.t.Helper()
	return j.Is(fmt.Sprintf("count %+v", want), func(s *batchv1alpha1.JobStatus) bool { return VolcanoTallyOf(s) == want })
}

// Is waits until the last status fulfils a condition, which what tells.
func (j *VolcanoJob) Is(what string, condition func(*batchv1alpha1.JobStatus) bool) *VolcanoJob {
	j.t.Helper()
	j.waitStatus(fmt.Sprintf("Job %s to %s", j.Name, what), condition)
	return j
}

// Stays wants the Job to be in the phase of now all the time.
func (j *VolcanoJob) Stays(d time.Duration) *VolcanoJob {
	j.t.Helper()
	phase := j.Status().State.Phase
	Consistently(j.t, fmt.Sprintf("Job %s stays %s", j.Name, phase), d, func(context.Context) (bool, string, error) {
		status := j.Status()
		return status.State.Phase == phase, describeStored(j.Statuses()), nil
	})
	return j
}

// HasPods waits until the Job has these Pods and no others.
func (j *VolcanoJob) HasPods(names ...string) *VolcanoJob {
	j.t.Helper()
	j.waitPods(names)
	return j
}

// Command asks for an action on the Job, as Volcano's CLI does.
func (j *VolcanoJob) Command(action busv1alpha1.Action) *busv1alpha1.Command {
	return &busv1alpha1.Command{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    fmt.Sprintf("%s-%s-", j.Name, strings.ToLower(string(action))),
			OwnerReferences: []metav1.OwnerReference{j.reference()},
		},
		Action: action, Target: new(j.reference()),
	}
}

func (j *VolcanoJob) reference() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: batchv1alpha1.SchemeGroupVersion.String(), Kind: batchv1alpha1.JobKind, Name: j.Name, UID: j.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// Issue creates a Command and returns its name.
func (j *VolcanoJob) Issue(command *busv1alpha1.Command) string {
	j.t.Helper()
	created, err := j.cluster.Lockstep.BusV1alpha1().Commands(j.Namespace).Create(j.t.Context(), command, metav1.CreateOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	return created.Name
}

// Commands are the names of those in the namespace of the Job.
func (j *VolcanoJob) Commands() []string {
	j.t.Helper()
	list, err := j.cluster.Lockstep.BusV1alpha1().Commands(j.Namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	var names []string
	for _, command := range list.Items {
		names = append(names, command.Name)
	}
	return names
}

// Do asks for an action, and waits until its Command is gone.
func (j *VolcanoJob) Do(action busv1alpha1.Action) *VolcanoJob {
	j.t.Helper()
	command := j.Issue(j.Command(action))
	Eventually(j.t, fmt.Sprintf("the Command %s to be executed", command), func(context.Context) (bool, string, error) {
		return !slices.Contains(j.Commands(), command), describeStored(j.Statuses()), nil
	})
	return j
}

// Edit changes the spec.
func (j *VolcanoJob) Edit(change func(*batchv1alpha1.JobSpec)) *VolcanoJob {
	j.t.Helper()
	client := j.cluster.Lockstep.BatchV1alpha1().Jobs(j.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		job, err := client.Get(j.t.Context(), j.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&job.Spec)
		_, err = client.Update(j.t.Context(), job, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return j
}

// Kill deletes a Pod of the Job, as a user or a drain does.
func (j *VolcanoJob) Kill(pod string) *VolcanoJob {
	j.t.Helper()
	j.cluster.DeletePod(j.t, j.Namespace, pod)
	return j
}

// Tells waits until an event of the Job has a type, a reason, and a text in its message.
func (j *VolcanoJob) Tells(kind, reason, text string) *VolcanoJob {
	j.t.Helper()
	j.waitEvent(kind, reason, text)
	return j
}

// BindClaim makes a volume of a folder of the node for a claim, as a provisioner would. It is
// removed when the test ends.
func (c *Cluster) BindClaim(t testing.TB, namespace, name, folder string) {
	t.Helper()
	client := c.Kube.CoreV1().PersistentVolumes()
	volume, err := client.Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: namespace, Name: name},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), volume.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}
