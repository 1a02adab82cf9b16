// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// ErrAmbiguous is of a name that several jobs have.
var ErrAmbiguous = errors.New("several jobs have this name")

// Job is a job of a kind other than Framework, or a PodGroup of Lockstep's API.
type Job struct {
	view.Row
	Resource schema.GroupVersionResource
	Object   *unstructured.Unstructured
}

// JobOf returns a job of the Objects of Jobs that is no Framework.
func JobOf(object runtime.Object) (*Job, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a %T is no job", object)
	}
	kind := u.GroupVersionKind()
	for _, jobKind := range JobKinds() {
		if singular, _, _ := strings.Cut(jobKind.Kind, "."); singular == kind.Kind && jobKind.Resource.GroupVersion() == kind.GroupVersion() {
			row, err := rowOf(jobKind, u)
			return &Job{row, jobKind.Resource, u}, err
		}
	}
	return nil, fmt.Errorf("a %s is no job", kind)
}

// IsPodGroup reports whether the job is a PodGroup.
func (j *Job) IsPodGroup() bool { return j.Resource == podGroups }

// podGroups are Lockstep's own.
var podGroups = schedulingv1alpha1.SchemeGroupVersion.WithResource(schedulingv1alpha1.PodGroupPlural)

// jobNamed reads the Volcano Job or training job with a name; nil if there is none that the user may read. `unread` are
// the resources in which the user may not read that name.
func (r *Reader) jobNamed(ctx context.Context, n Name) (named *Job, unread []string, err error) {
	var found []*Job
	var calls []string
	var failed error
	for _, kind := range n.kinds.jobs {
		object, err := r.Dynamic.Resource(kind.Resource).Namespace(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err) && len(n.kinds.jobs) > 1:
			if !r.isUnserved(ctx, kind.Resource) {
				unread = append(unread, kind.Resource.GroupResource().String())
			}
			continue
		case err != nil:
			// Another kind may have the name.
			failed = err
			continue
		}
		row, err := rowOf(kind, object)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, &Job{row, kind.Resource, object})
		calls = append(calls, strings.ToLower(kind.Kind)+"/"+n.Name)
	}
	switch len(found) {
	case 0:
		return nil, unread, failed
	case 1:
		return found[0], unread, nil
	default:
		return nil, nil, fmt.Errorf("%w: say which, as %s", ErrAmbiguous, strings.Join(calls, " or "))
	}
}

// hidden is a NotFound error with the kinds that the user may not read.
func hidden(missing error, unread []string) error {
	if len(unread) == 0 {
		return missing
	}
	return fmt.Errorf("%w, or it is one of what you may not read: %s", missing, strings.Join(unread, ", "))
}

// Named reads the object with a name. Named looks for a Framework first, then for a job of another kind, then for a
// PodGroup of Lockstep's API, and returns an error if none exists.
func (r *Reader) Named(ctx context.Context, n Name) (*frameworkv1.Framework, *Job, error) {
	missing := n.missing()
	if n.kinds.frameworks {
		fw, err := r.Framework(ctx, n.Namespace, n.Name)
		switch {
		case err == nil:
			return fw, nil, nil
		case !apierrors.IsNotFound(err):
			return nil, nil, err
		case IsUnserved(err) || !n.kinds.groups:
			missing = err
		}
	}
	named, unread, err := r.jobNamed(ctx, n)
	if err != nil || named != nil {
		return nil, named, err
	}
	if n.kinds.groups {
		group, err := r.podGroupNamed(ctx, n)
		if group != nil || !apierrors.IsNotFound(err) && !(apierrors.IsForbidden(err) && n.kinds.frameworks) {
			return nil, group, err
		}
		if apierrors.IsForbidden(err) {
			unread = append(unread, podGroups.GroupResource().String())
		}
	}
	return nil, nil, hidden(missing, unread)
}

// missing is the error of a name that nothing has which is meant.
func (n Name) missing() error {
	missing := apierrors.NewNotFound(n.resource(), n.Name)
	if n.kinds.frameworks && n.kinds.groups {
		missing.ErrStatus.Message = fmt.Sprintf("%q not found in namespace %s: no Framework, job or PodGroup has this name", n.Name, n.Namespace)
	}
	return missing
}

// podGroupNamed reads a PodGroup of Lockstep's own.
func (r *Reader) podGroupNamed(ctx context.Context, n Name) (*Job, error) {
	object, err := r.Dynamic.Resource(podGroups).Namespace(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	group, err := podGroupOf(object)
	if err != nil {
		return nil, err
	}
	return &Job{view.RowOfPodGroup(group), podGroups, object}, nil
}

func podGroupOf(object *unstructured.Unstructured) (*schedulingv1alpha1.PodGroup, error) {
	var group schedulingv1alpha1.PodGroup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &group); err != nil {
		return nil, fmt.Errorf("reading a PodGroup: %w", err)
	}
	return &group, nil
}

// JobAgain reads a job again. JobAgain returns a NotFound error if the job is gone, even if another job has taken its
// name.
func (r *Reader) JobAgain(ctx context.Context, j *Job) (*Job, error) {
	object, err := r.Dynamic.Resource(j.Resource).Namespace(j.Namespace).Get(ctx, j.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return nil, err
	case object.GetUID() != j.Object.GetUID():
		return nil, apierrors.NewNotFound(j.Resource.GroupResource(), j.Name)
	case j.IsPodGroup():
		group, err := podGroupOf(object)
		if err != nil {
			return nil, err
		}
		return &Job{view.RowOfPodGroup(group), podGroups, object}, nil
	}
	row, err := rowOf(JobKind{Kind: j.Kind, Resource: j.Resource}, object)
	return &Job{row, j.Resource, object}, err
}

// AddNamed adds what has a name: see Named.
func (r *Reader) AddNamed(ctx context.Context, n Name, to *Jobs) error {
	fw, named, err := r.Named(ctx, n)
	switch {
	case err != nil:
		return err
	case fw != nil:
		to.Add(fw)
		return nil
	}
	if !named.IsPodGroup() && isToBeAsked(&named.Row) {
		named.Waiting = r.waitingFor(ctx, n.Namespace)[named.Object.GetUID()]
	}
	to.Rows = append(to.Rows, named.Row)
	to.Objects = append(to.Objects, named.Object)
	return nil
}

// gang returns the newest gang of a job in a snapshot; false if the job has none.
func (j *Job) gang(s *whatif.Snapshot) (dialect.Key, bool) {
	var newest *dialect.Group
	for _, group := range s.Groups {
		if group.Key.Namespace == j.Namespace && group.IsFor(j.Object.GetUID()) && (newest == nil || newest.Created.Before(group.Created)) {
			newest = group
		}
	}
	if newest == nil {
		return dialect.Key{}, false
	}
	return newest.Key, true
}

// GangNamed returns the key of the gang of the Framework or job with a name. If no such job has a gang, it returns the
// key of the PodGroup with that name, in any PodGroup API; if there is none either, the key that a Framework's gang
// would have.
func (r *Reader) GangNamed(ctx context.Context, s *whatif.Snapshot, n Name) (dialect.Key, error) {
	ofFramework := dialect.Key{Namespace: n.Namespace, Name: frameworkv1.PodGroupName(n.Name)}
	if n.kinds.frameworks && s.Group(ofFramework) != nil {
		return ofFramework, nil
	}
	named, _, err := r.jobNamed(ctx, n)
	if err != nil {
		return dialect.Key{}, err
	}
	if named != nil {
		if key, has := named.gang(s); has {
			return key, nil
		}
	}
	if key, found := groupNamed(s, n); found {
		return key, nil
	}
	return ofFramework, nil
}

// groupNamed returns the key of the PodGroup with a name, from the first PodGroup API that has one.
func groupNamed(s *whatif.Snapshot, n Name) (dialect.Key, bool) {
	if !n.kinds.groups {
		return dialect.Key{}, false
	}
	for _, d := range append([]dialect.Dialect{dialect.Own}, othersAPIs...) {
		if key := (dialect.Key{Dialect: d, Namespace: n.Namespace, Name: n.Name}); s.Group(key) != nil {
			return key, true
		}
	}
	return dialect.Key{}, false
}
