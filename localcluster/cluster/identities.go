// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/lockstep-k8s/lockstep/localcluster/components"

// Namespace is where Lockstep lives.
const Namespace = "lockstep-system"

// KwokUser is who KWOK is to the API server.
const KwokUser = "kwok"

// Identity is who a component is to the API server.
type Identity struct {
	// Name names the kubeconfig (Layout.ComponentKubeconfig) and the key pair.
	Name   string
	User   string
	Groups []string
}

// Admin is the user of the cluster: all rights.
func Admin() Identity {
	return Identity{Name: "admin", User: "lockstep-local-admin", Groups: []string{"system:masters"}}
}

// KubeletClient is the API server as a client of kubelets.
func KubeletClient() Identity {
	return Identity{Name: "kubelet-client", User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}
}

// Identities lists who needs a kubeconfig. Lockstep's own programs come as their service
// accounts, so that they have the rights that the manifests give them and no other. KWOK and
// CoreDNS stand in for parts of the environment and get all rights.
func Identities() []Identity {
	return []Identity{
		{Name: components.ControllerManager, User: "system:kube-controller-manager"},
		{Name: components.Kwok, User: KwokUser, Groups: []string{"system:masters"}},
		{Name: components.CoreDNS, User: "coredns", Groups: []string{"system:masters"}},
		{Name: components.Kubelet, User: "system:node:" + RealNodeName, Groups: []string{"system:nodes"}},
		serviceAccount(Controller),
		serviceAccount(Scheduler),
	}
}

// serviceAccount is an identity that the API server cannot tell from a token of the service
// account lockstep-<name>.
func serviceAccount(name string) Identity {
	return Identity{
		Name:   name,
		User:   "system:serviceaccount:" + Namespace + ":lockstep-" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace},
	}
}
