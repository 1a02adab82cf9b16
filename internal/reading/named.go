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
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// ErrAmbiguous is of a name that several jobs have.
var ErrAmbiguous = errors.New("several jobs have this name")

// job is a job of a front end.
type job struct {
	view.Row
	uid    types.UID
	object *unstructured.Unstructured
}

// jobNamed reads the job of a front end that has a name; nil if there is none that the user may read. Unread are the
// resources of which he may not read one of that name.
func (r *Reader) jobNamed(ctx context.Context, n Name) (named *job, unread []string, err error) {
	var found []*job
	var calls []string
	var failed error
	for _, kind := range n.kinds.frontEnds {
		object, err := r.Dynamic.Resource(kind.Resource).Namespace(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case apierrors.IsForbidden(err) && len(n.kinds.frontEnds) > 1:
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
		found = append(found, &job{row, object.GetUID(), object})
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

// hidden is an error of something that was not found, with what it may be that the user may not read.
func hidden(missing error, unread []string) error {
	if len(unread) == 0 {
		return missing
	}
	return fmt.Errorf("%w, or it is one of what you may not read: %s", missing, strings.Join(unread, ", "))
}

// AddNamed adds the Framework of a name, else the job of a front end. It is an error if there is neither.
func (r *Reader) AddNamed(ctx context.Context, n Name, to *Jobs) error {
	missing := apierrors.NewNotFound(n.resource(), n.Name)
	if n.kinds.frameworks {
		fw, err := r.Framework(ctx, n.Namespace, n.Name)
		if err == nil {
			to.Add(fw)
			return nil
		}
		if !errors.As(err, &missing) || !apierrors.IsNotFound(err) || len(n.kinds.frontEnds) == 0 {
			return err
		}
	}
	named, unread, err := r.jobNamed(ctx, n)
	switch {
	case err != nil:
		return err
	case named == nil:
		return hidden(missing, unread)
	}
	to.Rows = append(to.Rows, named.Row)
	to.Objects = append(to.Objects, named.object)
	return nil
}

// gang is the newest gang of a job in a snapshot, and false if it has none.
func (j *job) gang(s *whatif.Snapshot) (dialect.Key, bool) {
	var newest *dialect.Group
	for _, group := range s.Groups {
		if group.Key.Namespace == j.Namespace && group.IsFor(j.uid) && (newest == nil || newest.Created.Before(group.Created)) {
			newest = group
		}
	}
	if newest == nil {
		return dialect.Key{}, false
	}
	return newest.Key, true
}

// GangNamed is the key of the gang of a Framework or a job of a name or, if there is none, of the PodGroup of that
// name, of whatever dialect. Where there is nothing of the kind, it is the key that the gang of a Framework would have.
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

// groupNamed is the key of the PodGroup of a name, of the first dialect that has one.
func groupNamed(s *whatif.Snapshot, n Name) (dialect.Key, bool) {
	if !n.kinds.groups {
		return dialect.Key{}, false
	}
	for _, d := range append([]dialect.Dialect{dialect.Own}, othersDialects...) {
		if key := (dialect.Key{Dialect: d, Namespace: n.Namespace, Name: n.Name}); s.Group(key) != nil {
			return key, true
		}
	}
	return dialect.Key{}, false
}
