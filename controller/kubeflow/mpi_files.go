// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Keys of the ConfigMap and the Secret, and the files that they become.
const (
	hostFileName      = "hostfile"
	discoverHostsName = "discover_hosts.sh"
	sshPublicKey      = "ssh-publickey"
)

// maxHosts limits the list of hosts in a ConfigMap, in bytes. The API server accepts 1 MiB.
const maxHosts = 1<<20 - 4<<10

// host returns where a Pod of an MPIJob is reached by ssh.
func (b *builder) host(t string, index int32) string {
	host := b.kind.objectName(b.job, t, index) + "." + b.job.Name + "." + b.job.Namespace + ".svc"
	if b.options.ClusterDomain != "" {
		host += "." + b.options.ClusterDomain
	}
	return host
}

// renderHostFile returns the list of hosts with their slots, in the format of the job's MPI implementation.
func (b *builder) renderHostFile() string {
	var file strings.Builder
	mpi := b.job.Spec.MPI
	add := func(t string, index int32) {
		file.WriteString(b.host(t, index))
		if mpi.Implementation == kubeflowv2beta1.MPIImplementationOpenMPI {
			file.WriteString(" slots=")
		} else {
			file.WriteString(":")
		}
		file.WriteString(strconv.Itoa(int(mpi.SlotsPerWorker)))
		file.WriteString("\n")
	}
	if mpi.RunLauncherAsWorker {
		add(kubeflowv1.ReplicaLauncher, 0)
	}
	if worker := typeIn(b.types, kubeflowv1.ReplicaWorker); worker != nil {
		for index := range worker.number {
			add(worker.name, index)
		}
	}
	return file.String()
}

// discoverHosts returns a script that prints the hosts of the running workers, for launchers that support a changing
// number of workers.
func (b *builder) discoverHosts(running jobpods.Indexes) string {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	add := func(t string, index int32) {
		script.WriteString("echo ")
		script.WriteString(b.host(t, index))
		script.WriteString("\n")
	}
	if b.job.Spec.MPI.RunLauncherAsWorker {
		add(kubeflowv1.ReplicaLauncher, 0)
	}
	for index := range running {
		if running.Has(int32(index)) {
			add(kubeflowv1.ReplicaWorker, int32(index))
		}
	}
	return script.String()
}

// tooManyHosts says which list of hosts is too long for a ConfigMap; "" if none is.
func (b *builder) tooManyHosts() string {
	if n := 2 * len(b.hostFile()); n > maxHosts {
		return fmt.Sprintf("spec.%s: the lists of hosts would have %d bytes, and may have %d: use a shorter name, or fewer replicas", b.kind.field, n, maxHosts)
	}
	return ""
}

// hostsDigest distinguishes ConfigMaps by their lists of hosts.
func (b *builder) hostsDigest(running jobpods.Indexes) string {
	return digestOf(b.hostFile() + "\x00" + running.String())
}

// config returns the ConfigMap with the hosts for the launcher.
func (b *builder) config(running jobpods.Indexes, start int32) *corev1.ConfigMap {
	config := &corev1.ConfigMap{
		ObjectMeta: b.metadata(configName(b.job), start),
		Data:       map[string]string{hostFileName: b.hostFile(), discoverHostsName: b.discoverHosts(running)},
	}
	config.Labels = b.jobLabels()
	config.Annotations[KeyContent] = b.hostsDigest(running)
	return config
}

// secret holds the keys by which the Pods log into each other.
func (b *builder) secret(start int32, keys jobpods.KeyMaker) (*corev1.Secret, error) {
	private, public, err := keys()
	if err != nil {
		return nil, fmt.Errorf("making the keys of ssh: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: b.metadata(SecretName(b.job), start),
		Type:       corev1.SecretTypeSSHAuth,
		Data:       map[string][]byte{corev1.SSHAuthPrivateKey: private, sshPublicKey: public},
	}
	secret.Labels = b.jobLabels()
	return secret, nil
}

// planMPI creates the ConfigMap and the Secret of an MPIJob, which stay as long as the job, and updates the ConfigMap
// when the set of running workers changes. planMPI reports whether both exist.
func (d *decision) planMPI() bool {
	if !d.kind.launches {
		return true
	}
	d.memory.hostsTold = d.Memory.hostsTold
	running, start, b := d.runningWorkers(), d.next.Starts, d.builder
	config, secret := d.ConfigMaps[configName(d.Job)], d.Secrets[SecretName(d.Job)]
	all := true
	if config == nil || d.isGone(config.GetUID()) {
		all = false
		d.create(KindConfigMap, configName(d.Job), b.hostsDigest(running), func() (metav1.Object, error) { return b.config(running, start), nil })
	} else {
		all = config.GetDeletionTimestamp() == nil
		d.updateHosts(config, running)
	}
	if secret == nil || d.isGone(secret.GetUID()) {
		all = false
		keys := d.Memory.keys.Once(d.Options.Keys)
		d.memory.keys = keys
		d.create(KindSecret, SecretName(d.Job), "keys", func() (metav1.Object, error) { return b.secret(start, keys) })
	} else {
		all = all && secret.GetDeletionTimestamp() == nil
	}
	return all
}

// create makes an object of the job that is alone of its kind.
func (d *decision) create(kind, name, content string, build func() (metav1.Object, error)) {
	d.ActIfCurrent(plan.Action{Verb: plan.Create, Kind: kind, Name: name, Owner: d.Job.UID, Content: content, Build: build})
}

// hostsPeriod is how soon the list of running workers is written again.
const hostsPeriod = 3 * time.Second

// updateHosts rewrites the ConfigMap if the set of running workers or the spec has changed. It delays the write, so
// that a thousand starting workers do not cause a thousand writes.
func (d *decision) updateHosts(config metav1.Object, running jobpods.Indexes) {
	digest := d.builder.hostsDigest(running)
	if config.GetAnnotations()[KeyContent] == digest || config.GetDeletionTimestamp() != nil {
		return
	}
	if due := d.memory.hostsTold.Add(hostsPeriod); d.clock.Before(due) {
		d.WakeAt(due)
		return
	}
	d.memory.hostsTold = d.clock
	d.rewrite(config, digest, map[string]string{
		hostFileName: d.builder.hostFile(), discoverHostsName: d.builder.discoverHosts(running),
	})
}

// runningWorkers returns the workers that run and are not being deleted.
func (d *decision) runningWorkers() jobpods.Indexes {
	for _, r := range d.replicas {
		if r.name != kubeflowv1.ReplicaWorker {
			continue
		}
		running := make(jobpods.Indexes, r.number)
		for index := range r.number {
			running.Set(index, runs(r.pods[index]))
		}
		return running
	}
	return nil
}
