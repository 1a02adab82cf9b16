// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxReservation bounds for how long room is kept without a member that comes.
const maxReservation = 24 * time.Hour

// AllNamespaces stands for every namespace where namespaces are listed.
const AllNamespaces = "*"

func setReservationDefaults(r *Reservation) {
	setDefault(&r.Timeout, metav1.Duration{Duration: 10 * time.Minute})
	setDefault(&r.NamespacePercent, 50)
	setDefault(&r.Preemption, false)
	for _, mode := range []*ReservationMode{&r.Lockstep, &r.SchedulerPlugins, &r.Volcano} {
		if *mode == "" {
			*mode = ReservationStrict
		}
	}
}

// validateReservation says what is out of range where the defaults are set.
func validateReservation(r *Reservation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d := r.Timeout.Duration; d < 0 || d > maxReservation {
		errs = append(errs, field.Invalid(path.Child("timeout"), d.String(), fmt.Sprintf("must be from 0s to %s", maxReservation)))
	}
	errs = append(errs, within(path.Child("namespacePercent"), r.NamespacePercent, 1, 100)...)
	modes := []ReservationMode{ReservationStrict, ReservationBestEffort, ReservationOff}
	errs = append(errs, oneOf(path.Child("lockstep"), &r.Lockstep, modes...)...)
	errs = append(errs, oneOf(path.Child("schedulerPlugins"), &r.SchedulerPlugins, modes...)...)
	errs = append(errs, oneOf(path.Child("volcano"), &r.Volcano, modes...)...)
	if n := len(r.Namespaces); n > maxNamespaces {
		errs = append(errs, field.Invalid(path.Child("namespaces"), n, fmt.Sprintf("must have at most %d namespaces", maxNamespaces)))
	}
	for i, namespace := range r.Namespaces {
		if namespace == AllNamespaces {
			continue
		}
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), namespace, problem))
		}
	}
	return errs
}

// Enables says whether groups of a namespace may ask for room.
func (r *Reservation) Enables(namespace string) bool {
	return slices.Contains(r.Namespaces, AllNamespaces) || slices.Contains(r.Namespaces, namespace)
}
