// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/apis/framework/statuscodec"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
)

// Encode encodes a status in the stored form: compressed if large, unless that is switched off.
func (d *decider) Encode(status *frameworkv1.FrameworkStatus) ([]byte, error) {
	return d.encoder.Encode(status, d.core.compress)
}

// Shorten cuts the diagnostics of a status, and sets a condition.
func (d *decider) Shorten(framework *frameworkv1.Framework, status *frameworkv1.FrameworkStatus, now time.Time) (*frameworkv1.FrameworkStatus, []byte, error) {
	short := statuscodec.Shorten(status)
	meta.SetStatusCondition(&short.Conditions, metav1.Condition{
		Type:               frameworkv1.ConditionStatusTooLarge,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: framework.Generation,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		Reason:             engine.ReasonStatusTooLarge,
		Message:            "The status is too large to be stored, its diagnostics are cut",
	})
	data, err := statuscodec.Encode(short, true)
	return short, data, err
}
