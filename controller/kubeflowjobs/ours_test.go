// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflowjobs

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
)

func TestWhoseJobItIs(t *testing.T) {
	const (
		lockstep = `"runPolicy":{"managedBy":"lockstep.dev/kubeflow"}`
		operator = `"runPolicy":{"managedBy":"kubeflow.org/training-operator"}`
		kueue    = `"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue"}`
		named    = `"tfReplicaSpecs":{"Worker":{"template":{"spec":{"schedulerName":"lockstep-scheduler"}}}}`
		other    = `"tfReplicaSpecs":{"Worker":{"template":{"spec":{"schedulerName":"another"}}}}`
		// garbled does not decode.
		garbled = `"tfReplicaSpecs":{"Worker":{"replicas":"many","template":{"spec":{"schedulerName":"lockstep-scheduler"}}}}`
	)
	all := []kubeflow.TakeJobs{kubeflow.TakeManaged, kubeflow.TakeScheduler, kubeflow.TakeAll}
	tests := map[string]struct {
		spec string
		// by are the settings of takeJobs by which it is taken.
		by    []kubeflow.TakeJobs
		wrong bool
	}{
		"one that names Lockstep":                    {spec: `{` + lockstep + `}`, by: all},
		"one that names nobody":                      {spec: `{}`, by: all[2:]},
		"one of the training operator":               {spec: `{` + operator + `}`, by: all[2:]},
		"one whose template names a scheduler":       {spec: `{` + named + `}`, by: all[1:]},
		"one whose template names another":           {spec: `{` + other + `}`, by: all[2:]},
		"one that runs in another cluster":           {spec: `{` + kueue + `,` + named + `}`},
		"a garbled one that names Lockstep":          {spec: `{` + lockstep + `,` + garbled + `}`, by: all, wrong: true},
		"a garbled one whose template names us":      {spec: `{` + garbled + `}`, by: all[1:], wrong: true},
		"a garbled one that runs in another cluster": {spec: `{` + kueue + `,` + garbled + `}`, wrong: true},
		"one that can't say whose it is":             {spec: `{"runPolicy":7}`, wrong: true},
		"one without readable types":                 {spec: `{"tfReplicaSpecs":"none"}`, by: all[2:], wrong: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, take := range all {
				c := &Core{kind: kinds()[0], options: kubeflow.Options{TakeJobs: take, SchedulerNames: []string{"lockstep-scheduler"}}, informers: noObjects()}
				job, err := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{Namespace: "ns", Name: "j"}, []byte(tc.spec))
				if job == nil || job.Name != "j" || job.Kind != kubeflowv1.TFJobKind {
					t.Fatalf("the job is %v, want one with its metadata and kind", job)
				}
				if got, want := !c.Ignores(job), slices.Contains(tc.by, take); got != want || (err != nil) != tc.wrong {
					t.Errorf("takeJobs %s: taken: %t, want %t; error: %v", take, got, want, err)
				}
				c.options.Namespaces = map[string]bool{"others": true}
				if job, _ := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{Namespace: "ns", Name: "j"}, []byte(tc.spec)); !c.Ignores(job) {
					t.Errorf("takeJobs %s: it is taken, although its namespace is not", take)
				}
			}
		})
	}
}

// TestAJobWhoseStatusIsOursStaysOurs, whatever scheduler its template names by now.
func TestAJobWhoseStatusIsOursStaysOurs(t *testing.T) {
	for manager, ours := range map[string]bool{engine.FieldManager: true, "training-operator": false} {
		c := &Core{kind: kinds()[0], options: kubeflow.Options{TakeJobs: kubeflow.TakeScheduler, Manager: engine.FieldManager}, informers: noObjects()}
		job, err := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{
			Namespace: "ns", Name: "j", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Subresource: "status"}},
		}, []byte(`{"tfReplicaSpecs":{"Worker":{"template":{"spec":{"schedulerName":"another"}}}}}`))
		if err != nil || c.Ignores(job) == ours {
			t.Errorf("status of %s: ours %t, want %t; error: %v", manager, !c.Ignores(job), ours, err)
		}
	}
}

func TestAnObjectConcernsTheJobsOfItsKind(t *testing.T) {
	labelled := func(operator string) map[string]string {
		return map[string]string{kubeflowv1.KeyJobName: "j", kubeflowv1.KeyOperatorName: operator}
	}
	controlled := func(kind string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{Kind: kind, Name: "k", Controller: &yes}}
	}
	tests := map[string]struct {
		object metav1.ObjectMeta
		want   map[string][]string // by kind
	}{
		"by its labels":                     {object: metav1.ObjectMeta{Labels: labelled("pytorchjob-controller")}, want: map[string][]string{"PyTorchJob": {"j"}}},
		"by its controller":                 {object: metav1.ObjectMeta{OwnerReferences: controlled("TFJob")}, want: map[string][]string{"TFJob": {"k"}}},
		"by both, which somebody changed":   {object: metav1.ObjectMeta{Labels: labelled("tfjob-controller"), OwnerReferences: controlled("JAXJob")}, want: map[string][]string{"TFJob": {"j"}, "JAXJob": {"k"}}},
		"an XGBoostJob, by its labels":      {object: metav1.ObjectMeta{Labels: labelled("xgboostjob-controller")}, want: map[string][]string{"XGBoostJob": {"j"}}},
		"a PaddleJob, by its labels":        {object: metav1.ObjectMeta{Labels: labelled("paddlejob-controller")}, want: map[string][]string{"PaddleJob": {"j"}}},
		"an MPIJob, by its controller":      {object: metav1.ObjectMeta{OwnerReferences: controlled("MPIJob")}, want: map[string][]string{"MPIJob": {"k"}}},
		"no job, by a label of another one": {object: metav1.ObjectMeta{Labels: labelled("mxjob-controller")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, k := range kinds() {
				if got := (&Core{kind: k}).jobsOf(&tc.object); !slices.Equal(got, tc.want[k.name]) {
					t.Errorf("of the kind %s: %v, want %v", k.name, got, tc.want[k.name])
				}
			}
		})
	}
}

func TestWhatIsRefusedForGood(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{}, "j", nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "j", errors.New("no right"))
	// What the API server makes of the denial of a ValidatingAdmissionPolicy without a reason, and of a
	// webhook without a code, and with that of a wrong object.
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "j", errors.New("ValidatingAdmissionPolicy 'quiet hours' with binding 'all' denied request: not now"))
	denied.ErrStatus.Reason, denied.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	refused := webhookerrors.ToStatusErr("policy.example.com", nil)
	unprocessable := webhookerrors.ToStatusErr("policy.example.com", &metav1.Status{Message: "no", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	tests := map[string]struct {
		kind string
		err  error
		want bool
	}{
		"a wrong Pod":                        {kubeflow.KindPod, invalid, true},
		"a Pod that a policy forbids":        {kubeflow.KindPod, forbidden, false},
		"a Pod that nobody can read":         {kubeflow.KindPod, apierrors.NewBadRequest("no JSON"), true},
		"a Pod that is too large":            {kubeflow.KindPod, apierrors.NewRequestEntityTooLargeError("limit is 3 MiB"), true},
		"a wrong Service":                    {kubeflow.KindService, invalid, true},
		"a Service without the right for it": {kubeflow.KindService, forbidden, false},
		"a wrong autoscaler":                 {kubeflow.KindAutoscaler, invalid, false},
		"a Pod that a policy denies":         {kubeflow.KindPod, denied, false},
		"a Service that a policy denies":     {kubeflow.KindService, denied, false},
		"a Pod that a webhook denies":        {kubeflow.KindPod, refused, false},
		"a Service that a webhook denies":    {kubeflow.KindService, unprocessable, false},
		"a Pod, by an API server in trouble": {kubeflow.KindPod, apierrors.NewInternalError(errors.New("oops")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (&Core{}).RefusesForGood(plan.Action{Verb: plan.Create, Kind: tc.kind}, tc.err); got != tc.want {
				t.Errorf("for good: %t, want %t", got, tc.want)
			}
			if (&Core{}).RefusesForGood(plan.Action{Verb: plan.Create, Kind: tc.kind, Tag: kubeflow.TriedAgain}, tc.err) {
				t.Error("it is given up, though it is to be tried again")
			}
		})
	}
}

// TestAJobIsAsLargeAsItIsToBe, or as its status says, if Pods are given up.
func TestAJobIsAsLargeAsItIsToBe(t *testing.T) {
	job := &Job{Job: &kubeflow.Job{}}
	job.Spec.Replicas = map[string]kubeflowv1.ReplicaSpec{"Worker": {Replicas: ptr.To[int32](100)}, "PS": {}}
	counts := func(n int32) *kubeflowv1.JobStatus {
		return &kubeflowv1.JobStatus{ReplicaStatuses: map[string]kubeflowv1.ReplicaStatus{"Worker": {Active: n, Succeeded: 1, Failed: 1}}}
	}
	for status, want := range map[*kubeflowv1.JobStatus]int{nil: 101, counts(1): 101, counts(200): 202} {
		if got := (&Core{}).Size(job, status); got != want {
			t.Errorf("with the status %+v its size is %d, want %d", status, got, want)
		}
	}
}

// noObjects are informers that hold nothing.
func noObjects() *informers {
	empty := func() cache.SharedIndexInformer {
		return cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{}, cache.SharedIndexInformerOptions{Indexers: engine.OwnerIndex("")})
	}
	return &informers{pods: empty(), services: empty()}
}

// TestAJobOfOthersIsNotKeptWhole: caches hold all jobs of the cluster. What may be ours is, and so is
// whose it is.
func TestAJobOfOthersIsNotKeptWhole(t *testing.T) {
	const worker = `"tfReplicaSpecs":{"Worker":{"template":{"spec":{"schedulerName":"another"}}}}`
	for spec, whole := range map[string]bool{
		`{` + worker + `}`: true, // It may have begun when its template named us.
		`{"runPolicy":{"managedBy":"kueue.x-k8s.io/multikueue","suspend":true},` + worker + `}`: false,
		`{"runPolicy":{"managedBy":"lockstep.dev/kubeflow"},` + worker + `}`:                    true,
	} {
		c := &Core{kind: kinds()[0], options: kubeflow.Options{TakeJobs: kubeflow.TakeScheduler}, informers: noObjects()}
		job, err := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{Namespace: "ns", Name: "j"}, []byte(spec))
		if err != nil || job.Name != "j" || job.Kind != kubeflowv1.TFJobKind || (len(job.Spec.Replicas) > 0) != whole {
			t.Errorf("of %s is kept: %+v, %v", spec, job, err)
		}
		if ignored := c.Ignores(job); ignored != (job.Spec.RunPolicy.ManagedBy == nil || !whole) {
			t.Errorf("%s is ignored: %t", spec, ignored)
		}
	}
}

// TestAJobThatHasBegunStaysOurs, though its template names another scheduler by now.
func TestAJobThatHasBegunStaysOurs(t *testing.T) {
	c := &Core{kind: kinds()[0], options: kubeflow.Options{TakeJobs: kubeflow.TakeScheduler}, informers: noObjects()}
	job, err := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "u"}, []byte(`{}`))
	if err != nil || !c.Ignores(job) {
		t.Fatalf("it is taken before it has begun: %v", err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j-worker-0", Annotations: map[string]string{kubeflow.KeyStart: "1"},
		OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: ptr.To(true)}}}}
	if err := c.informers.services.GetIndexer().Add(service); err != nil {
		t.Fatal(err)
	}
	if c.Ignores(job) {
		t.Error("it is left alone")
	}
}
