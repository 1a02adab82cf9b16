// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package asked

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// maxReviews bounds of how many namespaces is asked for one answer what a user may read there. Of
// others he is told counts.
const maxReviews = 50

// rights are what one user may read.
type rights struct {
	ctx  context.Context
	user user.Info
	asks authorizer.UnconditionalAuthorizer
	// left is of how many namespaces may still be asked, and known are those that were.
	left  int
	known map[string]bool
	// failed is why the API server could not say what the user may do, nil if it could.
	failed error
}

func rightsOf(ctx context.Context, user user.Info, asks authorizer.UnconditionalAuthorizer) *rights {
	return &rights{ctx: ctx, user: user, asks: asks, left: maxReviews, known: make(map[string]bool)}
}

// may asks whether the user may do something. An error is a no, and is kept.
func (r *rights) may(verb, group, version, resource, namespace, name string) bool {
	decision, _, err := r.asks.Authorize(r.ctx, authorizer.AttributesRecord{User: r.user, Verb: verb, APIGroup: group, APIVersion: version,
		Resource: resource, Namespace: namespace, Name: name, ResourceRequest: true})
	if decision == authorizer.DecisionAllow {
		return true
	}
	if err != nil && r.failed == nil {
		r.failed = err
	}
	return false
}

// refusal is what is told where the API server could not say what the user may do.
func (r *rights) refusal() *refusal {
	return &refusal{http.StatusServiceUnavailable, "the API server does not say what you may read: " + r.failed.Error()}
}

// podGroup says whether the user may get a PodGroup.
func (r *rights) podGroup(namespace, name string) bool {
	of := schedulingv1alpha1.SchemeGroupVersion
	return r.may("get", of.Group, of.Version, schedulingv1alpha1.PodGroupPlural, namespace, name)
}

// podGroups says whether the user may list the PodGroups of a namespace.
func (r *rights) podGroups(namespace string) bool {
	of := schedulingv1alpha1.SchemeGroupVersion
	return r.listed(of.Group, of.Version, schedulingv1alpha1.PodGroupPlural, namespace)
}

// gangs says whether the user may list what a gang is of: the PodGroups of its dialect in its namespace or, if it has none,
// the Pods.
func (r *rights) gangs(key dialect.Key) bool {
	if key.Dialect == dialect.Rules {
		return r.pods(key.Namespace)
	}
	of := key.Dialect.Resource()
	return r.listed(of.Group, of.Version, of.Resource, key.Namespace)
}

// pods says whether the user may list the Pods of a namespace.
func (r *rights) pods(namespace string) bool {
	return r.listed("", "v1", "pods", namespace)
}

// nodes says whether the user may list nodes.
func (r *rights) nodes() bool {
	return r.may("list", "", "v1", "nodes", "", "")
}

// listed says whether the user may list a resource in a namespace. It asks about all namespaces
// first, and then about as many as the bound allows.
func (r *rights) listed(group, version, resource, namespace string) bool {
	of := resource + "." + group
	everywhere, asked := r.known[of]
	if !asked {
		everywhere = r.may("list", group, version, resource, "", "")
		r.known[of] = everywhere
	}
	if everywhere {
		return true
	}
	key := of + "/" + namespace
	if known, asked := r.known[key]; asked || r.left == 0 {
		return known
	}
	r.left--
	r.known[key] = r.may("list", group, version, resource, namespace, "")
	return r.known[key]
}

// ofAnswers are the rights by which an answer is redacted.
func (r *rights) ofAnswers() whatif.Rights {
	return whatif.Rights{Nodes: r.nodes(), Pods: r.pods}
}
