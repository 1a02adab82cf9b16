// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// The list of the addresses of all Pods is as long as the job is large, and every Pod needs the list. Written out in
// each Pod, the lists of a job of n Pods have n² addresses: 40 MB of 1000. So a long list is kept once, in a
// ConfigMap, and Pods refer to it. Their programs read the same.

// DefaultMaxInline is the length, in bytes, of the longest list that is written into each Pod. 2 KiB are about fifty
// addresses.
const DefaultMaxInline = 2 << 10

// Names of the lists that all Pods get. A name is the name of a variable, and the list's key in the ConfigMap.
const (
	listCluster     = "LOCKSTEP_TF_CLUSTER"
	listPS          = "LOCKSTEP_PS_HOSTS"
	listWorkers     = "LOCKSTEP_WORKER_HOSTS"
	listWorkerAddrs = "WORKER_ADDRS"
)

// listsOfTensorFlow returns the part of TF_CONFIG that all Pods share. Workers that come and go do not get each other's
// addresses.
func (b *builder) listsOfTensorFlow() map[string]string {
	if b.job.Spec.EnableDynamicWorker || total(b.types) == 1 {
		return nil
	}
	return map[string]string{listCluster: b.cluster()}
}

// listsAsDesigned are those of the arguments, too.
func (b *builder) listsAsDesigned() map[string]string {
	hosts := b.hosts()
	lists := map[string]string{listPS: hosts[kubeflowv1.ReplicaPS], listWorkers: hosts[kubeflowv1.ReplicaWorker]}
	if total(b.types) > 1 {
		lists[listCluster] = b.cluster()
	}
	return lists
}

// listsOfXGBoost returns the names of the workers.
func (b *builder) listsOfXGBoost() map[string]string {
	if t := typeIn(b.types, kubeflowv1.ReplicaWorker); t == nil || t.number == 0 {
		return nil
	}
	return map[string]string{listWorkerAddrs: b.workers()}
}

// keptLists are the lists of a job that are kept in a ConfigMap, and their digest.
type keptLists struct {
	lists  map[string]string
	digest string
}

// renderLists finds the lists that are too long to be written out.
func (b *builder) renderLists() keptLists {
	if b.kind.lists == nil {
		return keptLists{}
	}
	lists := b.kind.lists(b)
	for name, list := range lists {
		if len(list) <= b.options.maxInline() {
			delete(lists, name)
		}
	}
	var all strings.Builder
	for _, name := range jobpods.SortedKeys(lists) {
		all.WriteString(name + "=" + lists[name] + "\x00")
	}
	return keptLists{lists: lists, digest: digestOf(all.String())}
}

// maxInline returns how long a list is at most that is written out.
func (o Options) maxInline() int {
	if o.MaxInline > 0 {
		return o.MaxInline
	}
	return DefaultMaxInline
}

// digestOf distinguishes ConfigMaps by their content.
func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:6])
}

// mention returns what to write in place of a list in a container's arguments or in later variables: the list itself,
// or $(name) for a variable that mention adds to the container.
func (b *builder) mention(c *corev1.Container, name, list string) string {
	if _, kept := b.lists().lists[name]; !kept {
		return list
	}
	if !slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name && v.ValueFrom != nil }) {
		c.Env = append(c.Env, b.listVariable(name, list))
	}
	return "$(" + name + ")"
}

// listVariable returns a variable with a list.
func (b *builder) listVariable(name, list string) corev1.EnvVar {
	if _, kept := b.lists().lists[name]; !kept {
		return corev1.EnvVar{Name: name, Value: list}
	}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: b.kind.listsName(b.job)}, Key: name,
	}}}
}

// listsName returns the name of the ConfigMap with the lists of a job.
func (k *kind) listsName(job *Job) string {
	return jobpods.NameOf(job.Name, "-"+strings.ToLower(k.gvk.Kind)+"-hosts")
}

// listsConfig returns the ConfigMap with the lists.
func (b *builder) listsConfig(start int32) *corev1.ConfigMap {
	config := &corev1.ConfigMap{ObjectMeta: b.metadata(b.kind.listsName(b.job), start), Data: b.lists().lists}
	config.Labels = b.jobLabels()
	config.Annotations[KeyContent] = b.lists().digest
	return config
}

// planHosts creates the ConfigMap with the job's lists of addresses, and updates it when the spec changes. The
// ConfigMap stays as long as the job. planHosts reports whether the ConfigMap exists and is up to date; no Pod is
// created before that.
func (d *decision) planHosts() bool {
	b, start := d.builder, d.next.Starts
	kept := b.lists()
	if len(kept.lists) == 0 {
		return true
	}
	config := d.ConfigMaps[d.kind.listsName(d.Job)]
	switch {
	case config == nil || d.isGone(config.GetUID()):
		d.create(KindConfigMap, d.kind.listsName(d.Job), kept.digest, func() (metav1.Object, error) { return b.listsConfig(start), nil })
		return false
	case config.GetDeletionTimestamp() != nil:
		return false
	case config.GetAnnotations()[KeyContent] != kept.digest:
		d.rewrite(config, kept.digest, kept.lists)
		return false
	}
	return true
}

// rewrite replaces what a ConfigMap says.
func (d *decision) rewrite(config metav1.Object, digest string, data map[string]string) {
	d.ActIfCurrent(plan.Action{
		Verb: plan.Update, Kind: KindConfigMap, Name: config.GetName(), UID: config.GetUID(), Content: digest,
		Patch: append(jobpods.Annotate(config, KeyContent, digest), plan.Operation{Op: "add", Path: "/data", Value: data}),
	})
}
