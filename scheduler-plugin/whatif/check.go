// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// The bounds of a PodGroup, as its CustomResourceDefinition has them.
const (
	maxRoles       = 256
	maxTopologies  = 4
	maxTopologyKey = 316
	maxAmounts     = 64
	maxText        = 253
)

// checkGang says what is wrong with a gang that is not there yet: what the API server would refuse as well, and names
// that no Pod can have.
func checkGang(key dialect.Key, gang *answers.Gang) error {
	if len(key.Name) > validation.LabelValueMaxLength {
		return fmt.Errorf("the name of a PodGroup has at most %d characters", validation.LabelValueMaxLength)
	}
	if len(gang.Roles) > maxRoles {
		return fmt.Errorf("a gang has at most %d roles", maxRoles)
	}
	for i := range gang.Roles {
		if len(gang.Roles[i].Name) > validation.LabelValueMaxLength {
			return fmt.Errorf("the name of a role has at most %d characters", validation.LabelValueMaxLength)
		}
	}
	return checkSpec(&gang.Spec)
}

// checkSpec says what the API server would refuse of the spec of a PodGroup.
func checkSpec(spec *schedulingv1alpha1.PodGroupSpec) error {
	switch {
	case spec.MinMember < 1:
		return errors.New("spec.minMember is at least 1")
	case len(spec.MinRoleMember) > maxRoles:
		return fmt.Errorf("spec.minRoleMember has at most %d roles", maxRoles)
	case len(spec.MinResources) > maxAmounts:
		return fmt.Errorf("spec.minResources has at most %d resources", maxAmounts)
	case len(spec.PriorityClassName) > maxText, len(spec.Queue) > maxText:
		return fmt.Errorf("spec.priorityClassName and spec.queue have at most %d characters", maxText)
	case len(spec.Topology) > maxTopologies:
		return fmt.Errorf("spec.topology has at most %d items", maxTopologies)
	case spec.DisruptionMode != "" && spec.DisruptionMode != schedulingv1alpha1.DisruptGang && spec.DisruptionMode != schedulingv1alpha1.DisruptPod:
		return errors.New("spec.disruptionMode is Gang or Pod")
	}
	for _, least := range spec.MinRoleMember {
		if least < 1 {
			return errors.New("every value of spec.minRoleMember is at least 1")
		}
	}
	for _, constraint := range spec.Topology {
		if len(constraint.Key) < 1 || len(constraint.Key) > maxTopologyKey {
			return fmt.Errorf("spec.topology[].key has from 1 to %d characters", maxTopologyKey)
		}
		if constraint.Mode != schedulingv1alpha1.TopologyRequired && constraint.Mode != schedulingv1alpha1.TopologyPreferred {
			return errors.New("spec.topology[].mode is Required or Preferred")
		}
	}
	return nil
}
