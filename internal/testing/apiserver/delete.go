// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func (s *Server) delete(c *call) (*revision, error) {
	options, err := c.deleteOptions()
	if err != nil {
		return nil, err
	}
	s.lockFor(c)
	defer s.unlock()
	current, err := s.current(c)
	if err != nil {
		return nil, err
	}
	return s.deleteObject(c.table, current, options)
}

func (s *Server) deleteCollection(c *call) error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	s.lockFor(c)
	defer s.unlock()
	for _, r := range c.table.state(len(c.table.log)) {
		if !c.query.sees(r) {
			continue
		}
		if _, err := s.deleteObject(c.table, r, options); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	options, err := decodeDeleteOptions(c.contentType, c.Body)
	if err != nil {
		return nil, err
	}
	if policy := c.values.Get("propagationPolicy"); policy != "" {
		options.PropagationPolicy = ptr.To(metav1.DeletionPropagation(policy))
	}
	return options, nil
}

// deleteObject deletes an object, or only begins the deletion; in that case it returns the object's new state.
func (s *Server) deleteObject(t *table, current *revision, options *metav1.DeleteOptions) (*revision, error) {
	if err := checkPreconditions(t, current, options.Preconditions); err != nil {
		return nil, err
	}
	object := current.change()
	metadata := metaOf(object)
	graceful, pending, period := false, false, int64(0)
	if pod, ok := object.(*corev1.Pod); ok {
		graceful, pending, period = s.deleteGracefully(pod, options.GracePeriodSeconds)
	}
	if pending {
		return current, nil
	}
	metadata.Finalizers = deletionFinalizers(metadata.Finalizers, options)
	switch {
	case len(metadata.Finalizers) > 0:
		if !graceful {
			s.markAsDeleting(metadata)
		}
		return s.store(t, current, object)
	case graceful && period > 0:
		return s.store(t, current, object)
	case graceful:
		// The deletion is stored before the object goes.
		stored, err := s.storeAsIs(t, current, object)
		if err != nil {
			return nil, err
		}
		current = stored
	}
	s.remove(t, current)
	return nil, nil
}

// storeAsIs stores a state if it is a new one.
func (s *Server) storeAsIs(t *table, current *revision, object runtime.Object) (*revision, error) {
	same, err := unchanged(t, current, object)
	if err != nil || same {
		return current, err
	}
	return s.put(t, object), nil
}

// deletionFinalizers returns the finalizers after a deletion: the last deletion decides about the dependents.
func deletionFinalizers(finalizers []string, options *metav1.DeleteOptions) []string {
	want := ""
	switch {
	case options.PropagationPolicy != nil:
		switch *options.PropagationPolicy {
		case metav1.DeletePropagationForeground:
			want = metav1.FinalizerDeleteDependents
		case metav1.DeletePropagationOrphan:
			want = metav1.FinalizerOrphanDependents
		}
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		want = metav1.FinalizerDeleteDependents
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		want = metav1.FinalizerOrphanDependents
	}
	ofGarbage := func(finalizer string) bool {
		return finalizer != want && (finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents)
	}
	finalizers = slices.DeleteFunc(slices.Clone(finalizers), ofGarbage)
	if want != "" && !slices.Contains(finalizers, want) {
		finalizers = append(finalizers, want)
	}
	return finalizers
}

func checkPreconditions(t *table, current *revision, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	var err error
	if uid := preconditions.UID; uid != nil && *uid != current.meta.UID {
		err = preconditionFailed("UID", *uid, current.meta.UID)
	}
	if version := preconditions.ResourceVersion; version != nil && *version != current.meta.ResourceVersion {
		err = preconditionFailed("ResourceVersion", *version, current.meta.ResourceVersion)
	}
	if err != nil {
		return apierrors.NewConflict(t.GroupResource(), current.meta.Name, err)
	}
	return nil
}

// markAsDeleting begins the deletion of an object that only finalizers hold.
func (s *Server) markAsDeleting(metadata *metav1.ObjectMeta) {
	now := s.time()
	if metadata.DeletionTimestamp == nil && metadata.Generation > 0 {
		metadata.Generation++
	}
	if metadata.DeletionTimestamp == nil || metadata.DeletionTimestamp.After(now.Time) {
		metadata.DeletionTimestamp = &now
	}
	metadata.DeletionGracePeriodSeconds = ptr.To[int64](0)
}

// deleteGracefully sets the grace period of a Pod that is deleted. `graceful` reports that the Pod gets a grace period
// for the first time; `pending`, that an earlier deletion is still under way. A later deletion can only shorten the
// period.
func (s *Server) deleteGracefully(pod *corev1.Pod, asked *int64) (graceful, pending bool, period int64) {
	if asked != nil && *asked < 0 {
		asked = ptr.To[int64](1)
	}
	now := s.time()
	if pod.DeletionTimestamp == nil {
		period = gracePeriod(pod, asked)
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(time.Duration(period) * time.Second)))
		pod.DeletionGracePeriodSeconds = &period
		pod.Generation++
		return true, false, period
	}
	before := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	switch {
	case before == 0:
		return false, false, 0
	case asked == nil || *asked >= before:
		return false, true, before
	}
	period = *asked
	end := metav1.NewTime(pod.DeletionTimestamp.Add(time.Duration(period-before) * time.Second))
	if end.Before(&now) {
		end = now
		if period != 0 {
			period = 1
		}
	}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &period
	return true, false, period
}
