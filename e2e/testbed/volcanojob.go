// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// VolcanoJob is a Volcano Job of a test, with all of its statuses that were stored. Its methods
// fail the test where what they wait for does not come.
type VolcanoJob struct {
	// Namespace and Name are those of the Job.
	Namespace, Name string
	// UID is that of the Job.
	UID types.UID

	t       testing.TB
	cluster *Cluster
	room    *Room
	done    sync.WaitGroup

	mu sync.Mutex
	// stored are the statuses, each with another one than before; writes counts all changes
	// of the Job.
	stored []batchv1alpha1.JobStatus
	writes int
	gone   bool
	// passed is how many of the statuses Passes has gone over.
	passed int
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
	j := &VolcanoJob{Namespace: namespace, Name: name, t: t, cluster: c, room: room}
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(expandTemplates(spec, room)), &job.Spec); err != nil {
		t.Fatalf("the spec %s: %v", spec, err)
	}
	client := c.Lockstep.BatchV1alpha1().Jobs(namespace)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher := Watch(t, list, client.Watch)
	t.Cleanup(j.done.Wait)
	j.done.Go(func() { j.collect(watcher) })
	created, err := client.Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.UID = created.UID
	return j
}

// collect notes what a watch tells of the Job.
func (j *VolcanoJob) collect(watcher watch.Interface) {
	defer watcher.Stop()
	var before string
	for told := range watcher.ResultChan() {
		job, ok := told.Object.(*batchv1alpha1.Job)
		if !ok || told.Type == watch.Bookmark || job.Name != j.Name {
			continue
		}
		j.mu.Lock()
		j.gone = told.Type == watch.Deleted
		if version := job.ResourceVersion; version != before && !j.gone {
			before = version
			j.writes++
			if job.Status.State.Phase != "" {
				j.stored = append(j.stored, job.Status)
			}
		}
		j.mu.Unlock()
	}
}

// Statuses are those that were stored until now.
func (j *VolcanoJob) Statuses() []batchv1alpha1.JobStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.stored)
}

// Writes is how often the Job was written until now.
func (j *VolcanoJob) Writes() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writes
}

// Status is the last one that was stored; nothing is in it before the first.
func (j *VolcanoJob) Status() batchv1alpha1.JobStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.stored) == 0 {
		return batchv1alpha1.JobStatus{}
	}
	return j.stored[len(j.stored)-1]
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
		Eventually(j.t, fmt.Sprintf("Job %s to be %s", j.Name, phase), func(context.Context) (bool, string, error) {
			j.mu.Lock()
			defer j.mu.Unlock()
			for i := j.passed; i < len(j.stored); i++ {
				if j.stored[i].State.Phase == phase {
					j.passed = i
					return true, "", nil
				}
			}
			return false, describeStored(j.stored), nil
		})
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
	Eventually(j.t, fmt.Sprintf("Job %s to %s", j.Name, what), func(context.Context) (bool, string, error) {
		status := j.Status()
		return condition(&status), describeStored(j.Statuses()), nil
	})
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

// IsGone waits until the Job is deleted.
func (j *VolcanoJob) IsGone() {
	j.t.Helper()
	Eventually(j.t, fmt.Sprintf("Job %s to be gone", j.Name), func(context.Context) (bool, string, error) {
		seen := describeStored(j.Statuses())
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.gone, seen, nil
	})
}

// Pods are those that the Job controls, by name.
func (j *VolcanoJob) Pods() map[string]*corev1.Pod {
	j.t.Helper()
	list, err := j.cluster.Kube.CoreV1().Pods(j.Namespace).List(j.t.Context(), metav1.ListOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.UID == j.UID {
			pods[list.Items[i].Name] = &list.Items[i]
		}
	}
	return pods
}

// HasPods waits until the Job has these Pods and no others.
func (j *VolcanoJob) HasPods(names ...string) *VolcanoJob {
	j.t.Helper()
	slices.Sort(names)
	Eventually(j.t, fmt.Sprintf("Job %s to have the Pods %v", j.Name, names), func(context.Context) (bool, string, error) {
		have := slices.Sorted(maps.Keys(j.Pods()))
		return slices.Equal(have, names), fmt.Sprint(have), nil
	})
	return j
}

// Pod is a Pod of the Job, once it is there.
func (j *VolcanoJob) Pod(name string) *corev1.Pod {
	j.t.Helper()
	var pod *corev1.Pod
	Eventually(j.t, "Pod "+name, func(context.Context) (bool, string, error) {
		pod = j.Pods()[name]
		return pod != nil, "", nil
	})
	return pod
}

// UIDs are those of the Pods of the Job that are not being deleted, by name.
func (j *VolcanoJob) UIDs() map[string]types.UID {
	j.t.Helper()
	uids := map[string]types.UID{}
	for name, pod := range j.Pods() {
		if pod.DeletionTimestamp == nil {
			uids[name] = pod.UID
		}
	}
	return uids
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
	Eventually(j.t, fmt.Sprintf("Job %s to tell of %s …%s…", j.Name, reason, text), func(context.Context) (bool, string, error) {
		events := j.Events()
		return slices.ContainsFunc(events, func(e corev1.Event) bool {
			return e.Type == kind && e.Reason == reason && strings.Contains(e.Message, text) && !e.LastTimestamp.IsZero()
		}), describeEvents(events), nil
	})
	return j
}

// Events are those of the Job.
func (j *VolcanoJob) Events() []corev1.Event {
	j.t.Helper()
	list, err := j.cluster.Kube.CoreV1().Events(j.Namespace).List(j.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(j.UID)})
	if err != nil {
		j.t.Fatal(err)
	}
	return list.Items
}

func describeEvents(events []corev1.Event) string {
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	return strings.Join(lines, "; ")
}

// roomLabel is on the nodes of a room: the label that Pods select, and the taint that keeps
// others out.
const roomLabel = "tests.lockstep.dev/room"

// Room is a set of simulated nodes for the Pods of one test.
type Room struct {
	name    string
	cluster *Cluster
	t       testing.TB
	nodes   []string
}

// Room makes nodes for one test, each with so many cores. They are there until the test ends,
// longer than its namespace if that is made later.
func (c *Cluster) Room(t testing.TB, cores ...int) *Room {
	t.Helper()
	r := &Room{name: fmt.Sprintf("room-%x", time.Now().UnixNano()), cluster: c, t: t}
	t.Cleanup(func() {
		for _, node := range r.nodes {
			if err := c.Kube.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), node, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	for _, n := range cores {
		r.AddNode(n, nil)
	}
	return r
}

// AddNode adds a node of so many cores, with these labels.
func (r *Room) AddNode(cores int, labels map[string]string) {
	r.t.Helper()
	client := r.cluster.Kube.CoreV1().Nodes()
	template, err := client.Get(r.t.Context(), "sim-0", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	name := fmt.Sprintf("%s-%d", r.name, len(r.nodes))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(template.Labels), Annotations: map[string]string{}},
		Spec: corev1.NodeSpec{Taints: append(slices.Clone(template.Spec.Taints),
			corev1.Taint{Key: roomLabel, Value: r.name, Effect: corev1.TaintEffectNoSchedule})},
		Status: corev1.NodeStatus{Capacity: template.Status.Capacity.DeepCopy(), Addresses: template.Status.Addresses, NodeInfo: template.Status.NodeInfo},
	}
	for key, value := range template.Annotations {
		if strings.HasPrefix(key, "kwok.x-k8s.io/") {
			node.Annotations[key] = value
		}
	}
	maps.Copy(node.Labels, labels)
	node.Labels[corev1.LabelHostname], node.Labels[roomLabel] = name, r.name
	node.Status.Capacity[corev1.ResourceCPU] = *resource.NewQuantity(int64(cores), resource.DecimalSI)
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	if _, err := client.Create(r.t.Context(), node, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.nodes = append(r.nodes, name)
}

// Cordon closes the nodes to new Pods, or opens them.
func (r *Room) Cordon(closed bool) {
	r.t.Helper()
	for _, node := range r.nodes {
		patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, closed)
		if _, err := r.cluster.Kube.CoreV1().Nodes().Patch(r.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// selection are the fields of a Pod's spec that bring it into the room.
func (r *Room) selection() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(", nodeSelector: {%s: %s}, tolerations: [{key: %s, operator: Exists}]", roomLabel, r.name, roomLabel)
}

var templatePattern = regexp.MustCompile(`@(∞|[0-9]+)(?:→([0-9]+))?(?:/([0-9]+))?`)

// expandTemplates puts templates in the place of what stands for them.
func expandTemplates(spec string, room *Room) string {
	var out strings.Builder
	for {
		at := templatePattern.FindStringSubmatchIndex(spec)
		if at == nil {
			out.WriteString(spec)
			return out.String()
		}
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return spec[at[2*i]:at[2*i+1]]
		}
		annotations, resources := "", ""
		if seconds := group(1); seconds != "∞" {
			annotations = fmt.Sprintf("%s: %q", jobs.AnnotationRunSeconds, seconds)
			if code := group(2); code != "" {
				annotations += fmt.Sprintf(", %s: %q", jobs.AnnotationExitCode, code)
			}
		}
		if cores := group(3); cores != "" {
			resources = fmt.Sprintf(", resources: {requests: {cpu: %s}}", cores)
		}
		fields, rest := braced(spec[at[1]:])
		if fields != "" {
			fields = ", " + fields
		}
		containers := ""
		if !strings.Contains(fields, " containers:") {
			containers = ", containers: [{name: c, image: i" + resources + "}]"
		}
		fmt.Fprintf(&out, "%stemplate: {metadata: {annotations: {%s}}, spec: {restartPolicy: Never%s%s%s}}",
			spec[:at[0]], annotations, containers, fields, room.selection())
		spec = rest
	}
}

// braced is what stands between a brace at the beginning and the one that closes it, and what
// follows.
func braced(s string) (inside, rest string) {
	if !strings.HasPrefix(s, "{") {
		return "", s
	}
	depth := 0
	for i, r := range s {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[1:i], s[i+1:]
			}
		}
	}
	return "", s
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
