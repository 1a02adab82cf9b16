// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

type (
	status = kubeflowv1.JobStatus
	view   = jobworld.View[*Job, status]
)

const gangScheduler = "lockstep-scheduler"

// core is this package, in a world.
type core struct {
	options Options
	entropy plan.Entropy
	memory  Memory
	// last is what the last decision has seen.
	last Snapshot
}

// steady is entropy without chance: the least of all numbers.
type steady struct{}

// fixedKeys are always the same.
func fixedKeys() (private, public []byte, err error) {
	return []byte("private"), []byte("public"), nil
}

func (steady) NewUID() types.UID            { panic("nothing is new") }
func (steady) Between(least, _ int64) int64 { return least }

func (c *core) Forget() { c.memory = Memory{} }

func (c *core) Decide(v *view, now time.Time) plan.Plan[status] {
	c.last = c.snapshot(v)
	p, memory := Decide(c.last, now, c.entropy)
	c.memory = memory
	return p
}

func (c *core) snapshot(v *view) Snapshot {
	s := Snapshot{
		Job: v.Owner, Memory: c.memory, Options: c.options,
		Pods: map[string]*corev1.Pod{}, Services: map[string]metav1.Object{},
		PodGroups: map[string]*schedulingv1alpha1.PodGroup{}, Autoscalers: map[string]metav1.Object{},
		ConfigMaps: map[string]metav1.Object{}, Secrets: map[string]metav1.Object{},
		Known: plan.Known[status]{
			Version: v.Version, Persisted: v.Persisted, Status: v.Status, Deleted: v.Deleted, Gone: v.Gone, Terminating: v.Terminating,
			Current: v.Current, Kept: v.Kept, Checked: v.Checked, Blocked: v.Blocked, Outcomes: v.Outcomes,
		},
	}
	for key, object := range v.Objects {
		if !v.Controls(object) {
			continue
		}
		switch o := object.(type) {
		case *corev1.Pod:
			s.Pods[key.Name] = KeepOfPod(o)
		case *corev1.Service:
			s.Services[key.Name] = o
		case *schedulingv1alpha1.PodGroup:
			s.PodGroups[key.Name] = o
		case *autoscalingv2.HorizontalPodAutoscaler:
			s.Autoscalers[key.Name] = o
		case *corev1.ConfigMap:
			s.ConfigMaps[key.Name] = o
		case *corev1.Secret:
			s.Secrets[key.Name] = o
		}
	}
	return s
}

// world is a world with a job and this core.
type world struct {
	*jobworld.World[*Job, status]
	core *core
}

// given is a TFJob j in namespace n, by its spec, in which @t stands for a good template.
func given(t *testing.T, spec string) *world { return givenOf(t, "v1", "TFJob", spec) }

// givenTorch is a PyTorchJob, and givenDesigned a TFJob of v1alpha2.
func givenTorch(t *testing.T, spec string) *world    { return givenOf(t, "v1", "PyTorchJob", spec) }
func givenDesigned(t *testing.T, spec string) *world { return givenOf(t, "v1alpha2", "TFJob", spec) }

// givenXGBoost, givenPaddle and givenJAX are jobs of those kinds.
func givenXGBoost(t *testing.T, spec string) *world { return givenOf(t, "v1", "XGBoostJob", spec) }
func givenPaddle(t *testing.T, spec string) *world  { return givenOf(t, "v1", "PaddleJob", spec) }
func givenJAX(t *testing.T, spec string) *world     { return givenOf(t, "v1", "JAXJob", spec) }

// givenMPI is an MPIJob.
func givenMPI(t *testing.T, spec string) *world { return givenOf(t, "v2beta1", "MPIJob", spec) }

func givenOf(t *testing.T, version, kind, spec string) *world {
	t.Helper()
	object := objectOf(t, version, kind, "", spec)
	if problems := validatorOf(t, object).Create(t, object); len(problems) > 0 {
		t.Fatalf("the API server refuses it: %v", problems)
	}
	return newWorld(t, jobOf(t, object))
}

func newWorld(t *testing.T, job *Job) *world {
	job.Namespace = "n"
	job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "lockstep-controller", Subresource: "status"}}
	c := &core{entropy: steady{}, options: Options{
		TakeJobs: TakeAll, GangSchedulerName: gangScheduler, SchedulerNames: []string{gangScheduler},
		Manager: "lockstep-controller", ReconcilePeriod: DefaultReconcilePeriod, Keys: fixedKeys,
	}}
	w := &world{World: jobworld.New[*Job, status](t, job, c), core: c}
	w.OwnerKind = job.Kind
	w.Cut = func(s *status) *status { return Kept(s, &status{}) }
	return w
}

// settle lets the controller do all that it can, and Pods that are deleted end.
func (w *world) settle() *world {
	w.T.Helper()
	for range 20 {
		before, writes := w.Version(), w.Writes
		w.Run()
		for _, name := range w.Names(KindPod) {
			w.EndPod(name)
		}
		if at := w.Owner.DeletionTimestamp; at != nil {
			for key := range w.Objects {
				w.Remove(key.Kind, key.Name)
			}
			w.Gone = true
		}
		if w.Version() == before && w.Writes == writes {
			break
		}
	}
	return w
}

// pass lets a number of seconds go by.
func (w *world) pass(seconds int) *world {
	w.T.Helper()
	w.settle()
	for range seconds {
		w.Now = w.Now.Add(time.Second)
		w.settle()
	}
	return w
}

// set sets the phase of Pods, with exit code 0 where they have ended.
func (w *world) set(phase corev1.PodPhase, names ...string) *world {
	w.T.Helper()
	w.settle()
	for _, name := range names {
		w.SetPhase(name, phase, 0)
	}
	return w.settle()
}

// run lets Pods run, all if none is named.
func (w *world) run(names ...string) *world {
	w.T.Helper()
	w.settle()
	if len(names) == 0 {
		names = w.OwnPods()
	}
	return w.set(corev1.PodRunning, names...)
}

// succeed lets Pods succeed.
func (w *world) succeed(names ...string) *world {
	w.T.Helper()
	return w.set(corev1.PodSucceeded, names...)
}

// exit lets a Pod fail with a code. A negative one leaves no word of its containers.
func (w *world) exit(name string, code int32) *world {
	w.T.Helper()
	w.settle()
	w.Now = w.Now.Add(2 * time.Second)
	w.SetPhase(name, corev1.PodFailed, code)
	return w.settle()
}

// restarted sets how often the container of a Pod was restarted in place.
func (w *world) restarted(name string, times int32) *world {
	w.T.Helper()
	pod := w.Pod(name)
	pod.Status.ContainerStatuses[0].RestartCount = times
	w.Store(KindPod, pod)
	return w.settle()
}

// edit changes the spec of the job. Maps in it are not shared with the job before.
func (w *world) edit(change func(*Spec)) *world {
	w.T.Helper()
	w.Edit(func(j *Job) {
		replicas := map[string]kubeflowv1.ReplicaSpec{}
		for name, spec := range j.Spec.Replicas {
			replicas[name] = spec
		}
		j.Spec.Replicas, j.names = replicas, nil
		change(&j.Spec)
	})
	return w.settle()
}

// suspend and resume are what Kueue does.
func (w *world) suspend(is bool) *world {
	w.T.Helper()
	return w.edit(func(s *Spec) { s.RunPolicy.Suspend = &is })
}

// scale sets the replicas of a type.
func (w *world) scale(name string, n int32) *world {
	w.T.Helper()
	return w.edit(func(s *Spec) {
		spec := s.Replicas[name]
		spec.Replicas = &n
		s.Replicas[name] = spec
	})
}

// says checks the conditions: "Created !Running(TFJobSuspended) Suspended", with ? for
// Unknown. The reason of one that is not True is shown.
func (w *world) says(want string) *world {
	w.T.Helper()
	if got := shown(w.settle().Written); got != want {
		w.T.Errorf("conditions: got %s, want %s", got, want)
	}
	return w
}

func shown(s *status) string {
	var all []string
	for _, c := range s.Conditions {
		switch c.Status {
		case corev1.ConditionTrue:
			all = append(all, string(c.Type))
		case corev1.ConditionFalse:
			all = append(all, fmt.Sprintf("!%s(%s)", c.Type, c.Reason))
		default:
			all = append(all, "?"+string(c.Type))
		}
	}
	return strings.Join(all, " ")
}

// counted checks the counts of all types: "PS 2/0/0 Worker 4/0/0", active, succeeded, failed.
func (w *world) counted(want string) *world {
	w.T.Helper()
	statuses := w.settle().Written.ReplicaStatuses
	if len(w.Written.TFReplicaStatuses) > 0 {
		statuses = w.Written.TFReplicaStatuses
	}
	var all []string
	for name, s := range statuses {
		all = append(all, fmt.Sprintf("%s %d/%d/%d", name, s.Active, s.Succeeded, s.Failed))
	}
	slices.Sort(all)
	if got := strings.Join(all, " "); got != want {
		w.T.Errorf("counts: got %s, want %s", got, want)
	}
	return w
}

// has checks which objects of a kind there are.
func (w *world) has(kind string, want ...string) *world {
	w.T.Helper()
	w.settle()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), w.Names(kind)); diff != "" {
		w.T.Errorf("%s (-want,+got):\n%s", kind, diff)
	}
	return w
}

// inPhase checks the phase.
func (w *world) inPhase(want kubeflowv1.JobPhase) *world {
	w.T.Helper()
	if got := w.settle().Written.Phase; got != want {
		w.T.Errorf("the phase is %s, want %s", got, want)
	}
	return w
}

// told is how often the user was told something for a reason.
func (w *world) told(reason string) int {
	n := 0
	for _, event := range w.Events {
		if event.Reason == reason {
			n++
		}
	}
	return n
}

// uid is that of a Pod, empty if it is not there.
func (w *world) uid(name string) string {
	if pod := w.settle().Pod(name); pod != nil {
		return string(pod.UID)
	}
	return ""
}

// env is the last value that a container of a Pod has for a variable, and how often it has one.
func (w *world) env(pod string, container int, name string) (value string, times int) {
	w.T.Helper()
	p := w.settle().Pod(pod)
	if p == nil {
		w.T.Fatalf("there is no Pod %s", pod)
	}
	for _, e := range p.Spec.Containers[container].Env {
		if e.Name == name {
			value, times = e.Value, times+1
		}
	}
	return value, times
}

// service is a Service of the job.
func (w *world) service(name string) *corev1.Service {
	w.T.Helper()
	service, ok := w.settle().Objects[jobworld.Key{Kind: KindService, Name: name}].(*corev1.Service)
	if !ok {
		w.T.Fatalf("there is no Service %s", name)
	}
	return service
}

// group is the only PodGroup.
func (w *world) group() *schedulingv1alpha1.PodGroup {
	w.T.Helper()
	names := w.settle().Names(KindPodGroup)
	if len(names) != 1 {
		w.T.Fatalf("PodGroups: %v, want one", names)
	}
	return w.Objects[jobworld.Key{Kind: KindPodGroup, Name: names[0]}].(*schedulingv1alpha1.PodGroup)
}

// take gives a name to an object of somebody else.
func (w *world) take(name string) {
	w.Store(KindPod, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.NewUID()}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
}

// keyOf is the key of a Pod.
func keyOf(name string) jobworld.Key { return jobworld.Key{Kind: KindPod, Name: name} }
