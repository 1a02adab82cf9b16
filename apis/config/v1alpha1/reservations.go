// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// maxReservation bounds for how long room is reserved for members to come.
const maxReservation = 24 * time.Hour

// AllNamespaces stands for every namespace where namespaces are listed.
const AllNamespaces = "*"

func setReservationsDefaults(r *Reservations) {
	setDefault(&r.MaxPercent, 50)
	setDefault(&r.IdlePercent, 2)
	setDefault(&r.MembersToCome.Timeout, metav1.Duration{Duration: 10 * time.Minute})
	setDefault(&r.MembersToCome.NamespaceMaxPercent, 50)
	setDefault(&r.MembersToCome.Preemption, false)
}

// validateReservations says what is out of range where the defaults are set.
func validateReservations(all *Reservations, path *field.Path) field.ErrorList {
	errs := within(path.Child("maxPercent"), all.MaxPercent, 0, 100)
	errs = append(errs, within(path.Child("idlePercent"), all.IdlePercent, 1, 100)...)
	r, path := &all.MembersToCome, path.Child("membersToCome")
	if d := r.Timeout.Duration; d < 0 || d > maxReservation {
		errs = append(errs, field.Invalid(path.Child("timeout"), d.String(), fmt.Sprintf("must be from 0s to %s", maxReservation)))
	}
	errs = append(errs, within(path.Child("namespaceMaxPercent"), r.NamespaceMaxPercent, 1, 100)...)
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

// Enables says whether groups of a namespace may announce members.
func (r *MembersToCome) Enables(namespace string) bool {
	return slices.Contains(r.Namespaces, AllNamespaces) || slices.Contains(r.Namespaces, namespace)
}

// renamedFields returns an error that names the new field of the first field that has an old name, nil if none has.
func renamedFields(raw []byte) error {
	var old struct {
		StarvationAfter any `json:"starvationAfter"`
		TurnTimeout     any `json:"turnTimeout"`
		Dialects        any `json:"dialects"`
	}
	if err := yaml.Unmarshal(raw, &old); err != nil {
		return nil // DecodeCoschedulingArgs reports it
	}
	switch {
	case old.StarvationAfter != nil:
		return errors.New("starvationAfter is not a field any more: the first group that waits has room reserved at once, which other work uses as backfill says; reservations.maxPercent: 0 reserves none")
	case old.TurnTimeout != nil:
		return errors.New("turnTimeout is now cycleTimeout")
	case old.Dialects != nil:
		return errors.New("dialects is now podGroupAPIs, dialects.rules is groupingRules, and dialects.reservation is reservations.membersToCome")
	}
	return nil
}
