// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// JobKind is a kind of job beside Frameworks.
type JobKind struct {
	Kind     string
	Resource schema.GroupVersionResource
	// Short are names that people give to the kind, besides those of the API.
	Short []string
}

// JobKinds returns the kinds of jobs beside Frameworks that are listed.
func JobKinds() []JobKind {
	of := func(kind, group, version, resource string) JobKind {
		return JobKind{Kind: kind, Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
	}
	volcano := of("Job.batch.volcano.sh", "batch.volcano.sh", "v1alpha1", "jobs")
	// Those of Volcano's CustomResourceDefinition.
	volcano.Short = []string{"vcjob", "vj"}
	return []JobKind{
		volcano,
		of("TFJob", "kubeflow.org", "v1", "tfjobs"),
		of("PyTorchJob", "kubeflow.org", "v1", "pytorchjobs"),
		of("XGBoostJob", "kubeflow.org", "v1", "xgboostjobs"),
		of("PaddleJob", "kubeflow.org", "v1", "paddlejobs"),
		of("JAXJob", "kubeflow.org", "v1", "jaxjobs"),
		of("MPIJob", "kubeflow.org", "v2beta1", "mpijobs"),
	}
}

// Jobs are Frameworks and jobs of other kinds.
type Jobs struct {
	// Rows are in the order of namespaces and names.
	Rows []view.Row
	// Objects are the jobs themselves, in any order; empty if only rows were asked for.
	Objects []runtime.Object
	// Unread are phrases, without full stops, about what could not be read. UnreadKinds are the kinds for which Rows
	// may be incomplete.
	Unread      []string
	UnreadKinds []string

	rowsOnly bool
	// uids are the UIDs of Rows, in their order, until Rows are sorted.
	uids []types.UID
}

// Jobs lists the jobs that the selectors of the options select, in a namespace, or in all namespaces if namespace is
// empty. Jobs returns an error if Frameworks can't be listed. Other kinds that can't be listed are named in Unread.
func (r *Reader) Jobs(ctx context.Context, namespace string, options metav1.ListOptions) (*Jobs, error) {
	return r.jobs(ctx, namespace, options, &Jobs{})
}

// Rows lists jobs as Jobs does, but keeps only the rows, since an object may take a megabyte.
func (r *Reader) Rows(ctx context.Context, namespace string, options metav1.ListOptions) (*Jobs, error) {
	return r.jobs(ctx, namespace, options, &Jobs{rowsOnly: true})
}

func (r *Reader) jobs(ctx context.Context, namespace string, options metav1.ListOptions, found *Jobs) (*Jobs, error) {
	if err := r.EachFramework(ctx, namespace, options, found.Add); err != nil {
		return nil, err
	}
	served := make(map[schema.GroupVersion][]metav1.APIResource)
	for _, kind := range JobKinds() {
		if err := r.addAll(ctx, found, kind, namespace, options); err != nil && !IsUnserved(err) && !r.isAbsent(ctx, kind, err, served) {
			found.Unread = append(found.Unread, Unread("Jobs of the kind "+kind.Kind, err))
			found.UnreadKinds = append(found.UnreadKinds, kind.Kind)
		}
	}
	if slices.ContainsFunc(found.Rows, func(row view.Row) bool { return isToBeAsked(&row) }) {
		found.wait(r.waitingFor(ctx, namespace))
	}
	SortRows(found.Rows)
	return found, nil
}

// isToBeAsked reports whether the job may be waiting for its gang without saying so in its own status.
func isToBeAsked(row *view.Row) bool {
	return row.Kind != "Framework" && row.Waiting == "" && row.State != "Suspended" && !view.JobFinal(row.State)
}

// waitingFor returns why jobs of other kinds in a namespace wait for nodes, by the job's UID. The reasons come from the
// jobs' PodGroups; if these can't be read, it returns none.
func (r *Reader) waitingFor(ctx context.Context, namespace string) map[types.UID]string {
	reasons := make(map[types.UID]string)
	_ = pages(ctx, namespace, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := r.Lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			reason := view.WaitingOfGroup(&page.Items[i])
			for _, owner := range page.Items[i].OwnerReferences {
				if reason != "" {
					reasons[owner.UID] = reason
				}
			}
		}
		return page.Continue, nil
	})
	return reasons
}

// wait gives rows of jobs without a reason the reasons of their PodGroups.
func (j *Jobs) wait(reasons map[types.UID]string) {
	for i := range j.Rows {
		if row := &j.Rows[i]; isToBeAsked(row) {
			row.Waiting = reasons[j.uids[i]]
		}
	}
	j.uids = nil
}

// SortRows brings rows into the order of namespaces and names.
func SortRows(rows []view.Row) {
	slices.SortStableFunc(rows, func(a, b view.Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// EachFramework calls `each` for the Frameworks that the selectors of the options select, in a namespace, or in all
// namespaces if namespace is empty.
func (r *Reader) EachFramework(ctx context.Context, namespace string, options metav1.ListOptions, each func(*frameworkv1.Framework)) error {
	return pages(ctx, namespace, func(ctx context.Context, namespace string, at metav1.ListOptions) (string, error) {
		options.Limit, options.Continue = at.Limit, at.Continue
		page, err := r.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).List(ctx, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			each(&page.Items[i])
		}
		return page.Continue, nil
	})
}

// isAbsent reports whether a kind does not exist, after the API server refused to list it: the API server checks rights
// before it looks for the kind. served caches discovery by group version.
func (r *Reader) isAbsent(ctx context.Context, kind JobKind, err error, served map[schema.GroupVersion][]metav1.APIResource) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	version := kind.Resource.GroupVersion()
	if _, asked := served[version]; !asked {
		resources, known := r.resources(ctx, version)
		if !known {
			return false
		}
		served[version] = resources
	}
	return !has(served[version], kind.Resource)
}

// isUnserved reports whether a resource is known not to be served.
func (r *Reader) isUnserved(ctx context.Context, resource schema.GroupVersionResource) bool {
	resources, known := r.resources(ctx, resource.GroupVersion())
	return known && !has(resources, resource)
}

func has(resources []metav1.APIResource, wanted schema.GroupVersionResource) bool {
	return slices.ContainsFunc(resources, func(resource metav1.APIResource) bool { return resource.Name == wanted.Resource })
}

// resources returns the resources that the API server serves in a group version. `known` is false if that could not be
// found out.
func (r *Reader) resources(ctx context.Context, version schema.GroupVersion) (all []metav1.APIResource, known bool) {
	list, err := discovery.ToServerResourcesInterfaceWithContext(r.Kube.Discovery()).ServerResourcesForGroupVersionWithContext(ctx, version.String())
	switch {
	case err == nil:
		return list.APIResources, true
	default:
		return nil, apierrors.IsNotFound(err)
	}
}

// Add adds a Framework.
func (j *Jobs) Add(fw *frameworkv1.Framework) {
	fw.SetGroupVersionKind(frameworkv1.SchemeGroupVersion.WithKind("Framework"))
	j.add(view.RowOfFramework(fw, time.Now()), fw, fw.UID)
}

func (j *Jobs) add(row view.Row, object runtime.Object, uid types.UID) {
	j.Rows, j.uids = append(j.Rows, row), append(j.uids, uid)
	if !j.rowsOnly {
		j.Objects = append(j.Objects, object)
	}
}

// addAll adds the jobs of a kind.
func (r *Reader) addAll(ctx context.Context, j *Jobs, kind JobKind, namespace string, options metav1.ListOptions) error {
	options.Limit = pageSize
	var unreadable error
	for {
		page, err := r.Dynamic.Resource(kind.Resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			row, err := rowOf(kind, &page.Items[i])
			if err != nil {
				unreadable = errors.Join(unreadable, err)
				continue
			}
			j.add(row, &page.Items[i], page.Items[i].GetUID())
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			if unreadable != nil {
				j.Unread = append(j.Unread, Unread("Some jobs of the kind "+kind.Kind, unreadable))
			}
			return nil
		}
	}
}

func rowOf(kind JobKind, object *unstructured.Unstructured) (view.Row, error) {
	if kind.Resource.Group != batchv1alpha1.SchemeGroupVersion.Group {
		return view.RowOfTrainingJob(kind.Kind, object.Object)
	}
	var job batchv1alpha1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return view.Row{}, fmt.Errorf("reading a Job: %w", err)
	}
	return view.RowOfVolcanoJob(&job), nil
}
