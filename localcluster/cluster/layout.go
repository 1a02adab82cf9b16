// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "path/filepath"

// Layout names the files of a cluster. All of them lie under Dir.
type Layout struct {
	Dir string
}

func (l Layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.Dir}, elem...)...)
}

// Kubeconfig is the administrator's kubeconfig.
func (l Layout) Kubeconfig() string { return l.path("kubeconfig") }

// State is the file in which the supervisor says what runs (supervisor.State).
func (l Layout) State() string { return l.path("state.json") }

// Lock is held by the supervisor, and by the reaper that outlives it, for as long as anything
// of the cluster may exist outside Dir.
func (l Layout) Lock() string { return l.path("lock") }

// Logs is the directory of the logs, Log that of one component.
func (l Layout) Logs() string           { return l.path("logs") }
func (l Layout) Log(name string) string { return l.path("logs", name+".log") }

// AuditLog is where the API server writes down who changed what, a JSON object a line. It is
// there only if the options ask for it.
func (l Layout) AuditLog() string { return l.path("logs", "audit.log") }

// Bin holds links to the binaries, for people.
func (l Layout) Bin() string { return l.path("bin") }

// PKI is the directory of certificates and keys.
func (l Layout) PKI() string             { return l.path("pki") }
func (l Layout) Cert(name string) string { return l.path("pki", name+".crt") }
func (l Layout) Key(name string) string  { return l.path("pki", name+".key") }

// ComponentKubeconfig is the kubeconfig with which a component reaches the API server.
func (l Layout) ComponentKubeconfig(name string) string { return l.path("kubeconfigs", name) }

// Config is a configuration file of a component.
func (l Layout) Config(name string) string { return l.path("config", name) }

// EtcdData is the data directory of etcd.
func (l Layout) EtcdData() string { return l.path("etcd") }

// Node is the directory of the real node's own state, NodePath a path in it.
func (l Layout) Node() string { return l.path("node") }
func (l Layout) NodePath(elem ...string) string {
	return l.path(append([]string{"node"}, elem...)...)
}

// ContainerdSocket is where the real node's container runtime listens.
func (l Layout) ContainerdSocket() string { return l.NodePath("containerd.sock") }

// Owned lists what of Dir belongs to the cluster, logs apart: `down` removes this and nothing
// else, so that a mistaken --dir costs no one their files.
func (l Layout) Owned() []string {
	var out []string
	for _, name := range []string{"kubeconfig", "state.json", "bin", "pki", "kubeconfigs", "config", "etcd", "node", "kwok"} {
		out = append(out, l.path(name))
	}
	return out
}
