// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
)

// This is where the first container of a Pod finds its hosts.
const (
	rootSSHPath  = "/root/.ssh"
	configPath   = "/etc/mpi"
	sshVolume    = "ssh-auth"
	configVolume = "mpi-job-config"
	// sshPatience has ssh try again while a worker starts.
	sshPatience = "-o ConnectionAttempts=10"
)

// tellOfMPI gives a Pod its host name and the ssh keys. Workers get a command that waits for the launcher to log in,
// and the launcher gets the list of hosts.
func (b *builder) tellOfMPI(pod *podMaking) {
	mpi, spec := b.job.Spec.MPI, &pod.Spec
	spec.Hostname, spec.Subdomain = pod.Name, b.job.Name
	if spec.HostNetwork {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	container := b.kind.mainContainer(spec)
	container.Env = append(container.Env, corev1.EnvVar{Name: "K_MPI_JOB_ROLE", Value: lower(pod.of.name)})
	b.mountKeys(spec, container)
	if !pod.of.launches {
		// Intel's MPI and MPICH look the launcher up by its host name alone.
		if spec.DNSConfig == nil {
			spec.DNSConfig = &corev1.PodDNSConfig{}
		}
		spec.DNSConfig.Searches = append(spec.DNSConfig.Searches, b.job.Name+"."+b.job.Namespace+".svc.cluster.local")
		if len(container.Command)+len(container.Args) == 0 {
			container.Command = []string{"/usr/sbin/sshd", "-De"}
		}
		return
	}
	set := func(name, value string) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	slots := strconv.Itoa(int(mpi.SlotsPerWorker))
	switch mpi.Implementation {
	case kubeflowv2beta1.MPIImplementationIntel:
		set("I_MPI_HYDRA_HOST_FILE", configPath+"/"+hostFileName)
		set("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", sshPatience)
		set("I_MPI_PERHOST", slots)
	case kubeflowv2beta1.MPIImplementationMPICH:
		set("HYDRA_HOST_FILE", configPath+"/"+hostFileName)
		set("HYDRA_LAUNCH_EXTRA_ARGS", sshPatience)
	default:
		set("OMPI_MCA_orte_keep_fqdn_hostnames", "true")
		set("OMPI_MCA_orte_default_hostfile", configPath+"/"+hostFileName)
		set("OMPI_MCA_plm_rsh_args", sshPatience)
		set("OMPI_MCA_orte_set_default_slots", slots)
	}
	if !mpi.RunLauncherAsWorker {
		set("NVIDIA_VISIBLE_DEVICES", "") // The launcher needs none.
		set("NVIDIA_DRIVER_CAPABILITIES", "")
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: configVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configName(b.job)},
		Items: []corev1.KeyToPath{
			{Key: hostFileName, Path: hostFileName, Mode: ptr.To[int32](0o444)},
			{Key: discoverHostsName, Path: discoverHostsName, Mode: ptr.To[int32](0o555)},
		},
	}}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: configVolume, MountPath: configPath})
}

// mountKeys gives a container the keys of ssh.
func (b *builder) mountKeys(spec *corev1.PodSpec, container *corev1.Container) {
	path := b.job.Spec.MPI.SSHAuthMountPath
	source := &corev1.SecretVolumeSource{SecretName: SecretName(b.job), Items: []corev1.KeyToPath{
		{Key: corev1.SSHAuthPrivateKey, Path: "id_rsa"},
		{Key: sshPublicKey, Path: "id_rsa.pub"},
		{Key: sshPublicKey, Path: "authorized_keys"},
	}}
	if path == rootSSHPath {
		source.DefaultMode = ptr.To[int32](0o600) // Elsewhere a user who is not root has to read them.
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: sshVolume, VolumeSource: corev1.VolumeSource{Secret: source}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: sshVolume, MountPath: path})
}
