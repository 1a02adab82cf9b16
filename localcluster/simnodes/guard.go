// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package simnodes

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// guardName names the policy and its binding.
const guardName = "simulated-nodes"

// Guard lets KWOK, which comes as user, delete only Pods that somebody has deleted before.
//
// KWOK 0.8.0 deletes Pods by name, without their UID, and may do so twice: a Pod that has
// taken the name meanwhile would be lost, which no kubelet does.
func Guard(ctx context.Context, client kubernetes.Interface, user string) error {
	name := metav1.ObjectMeta{Name: guardName}
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Delete},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
					},
				}},
			},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "kwok", Expression: fmt.Sprintf("request.userInfo.username == %q", user),
			}},
			Validations: []admissionv1.Validation{{
				Expression: "has(oldObject.metadata.deletionTimestamp)",
				Message:    "nobody has deleted this Pod",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: guardName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("guarding Pods against KWOK: %w", err)
	}
	_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("guarding Pods against KWOK: %w", err)
	}
	return nil
}
