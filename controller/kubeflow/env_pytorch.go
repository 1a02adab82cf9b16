// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// tellOfPyTorch sets the variables by which the containers of a Pod find the master. tellOfPyTorch also makes workers
// wait until the master's name can be resolved.
func (b *builder) tellOfPyTorch(pod *podMaking) {
	env := []corev1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "1"}}
	set := func(value string, names ...string) {
		for _, name := range names {
			env = append(env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	spec, nodes := &b.job.Spec, total(b.types)
	master := typeIn(b.types, kubeflowv1.ReplicaMaster)
	if master != nil {
		rank := pod.index
		if pod.of != master {
			rank++
		}
		set(b.portOf(master), "MASTER_PORT", "PET_MASTER_PORT")
		set(b.masterName(), "MASTER_ADDR", "PET_MASTER_ADDR")
		set(strconv.FormatInt(int64(nodes)*processes(spec), 10), "WORLD_SIZE")
		set(strconv.Itoa(int(rank)), "RANK", "PET_NODE_RANK")
	}
	elastic := spec.ElasticPolicy
	switch {
	case spec.NprocPerNode != nil:
		set(*spec.NprocPerNode, "PET_NPROC_PER_NODE")
	case elastic == nil || elastic.NProcPerNode == nil:
		set("auto", "PET_NPROC_PER_NODE")
	}
	if elastic == nil {
		set(strconv.Itoa(int(nodes)), "PET_NNODES")
	} else {
		b.tellOfElasticity(elastic, pod, set)
	}
	jobpods.SetEnv(jobpods.AppContainers(&pod.Spec), env...)
	if master != nil && pod.of != master {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, b.waitForMaster())
	}
}

// tellOfElasticity gives workers the address where the processes of an elastic job meet. A master counts as one more
// worker.
func (b *builder) tellOfElasticity(elastic *kubeflowv1.ElasticPolicy, pod *podMaking, set func(value string, names ...string)) {
	worker := typeIn(b.types, kubeflowv1.ReplicaWorker)
	host, port := b.meetingHost(pod), b.portOf(worker)
	if elastic.RDZVHost != nil {
		host = *elastic.RDZVHost
	}
	if elastic.RDZVPort != nil {
		port = strconv.Itoa(int(*elastic.RDZVPort))
	}
	set(host+":"+port, "PET_RDZV_ENDPOINT")
	backend := kubeflowv1.RDZVBackendC10D
	if elastic.RDZVBackend != nil {
		backend = *elastic.RDZVBackend
	}
	set(string(backend), "PET_RDZV_BACKEND")
	fewest, most := bounds(elastic, worker)
	if typeIn(b.types, kubeflowv1.ReplicaMaster) != nil {
		fewest, most = fewest+1, most+1
	}
	set(fmt.Sprintf("%d:%d", fewest, most), "PET_NNODES")
	if elastic.MaxRestarts != nil {
		set(strconv.Itoa(int(*elastic.MaxRestarts)), "PET_MAX_RESTARTS")
	}
	if elastic.NProcPerNode != nil {
		set(strconv.Itoa(int(*elastic.NProcPerNode)), "PET_NPROC_PER_NODE")
	}
	if elastic.RDZVID != nil {
		set(*elastic.RDZVID, "PET_RDZV_ID")
	}
	if len(elastic.RDZVConf) > 0 {
		var settings []string
		for _, setting := range elastic.RDZVConf {
			settings = append(settings, setting.Key+"="+setting.Value)
		}
		set(strings.Join(settings, ","), rdzvConf)
	}
	if elastic.Standalone != nil && *elastic.Standalone {
		set("", "PET_STANDALONE")
	}
}

// meetingHost returns the name under which a Pod knows worker 0, where elastic workers meet. Worker 0 uses the bare
// host name of its Pod, because torchrun hosts the store only if the given name is the host's own. A Pod on the node's
// network has the host name of the node.
func (b *builder) meetingHost(pod *podMaking) string {
	if pod.of.name == kubeflowv1.ReplicaWorker && pod.index == 0 && !pod.Spec.HostNetwork {
		return b.kind.objectName(b.job, kubeflowv1.ReplicaWorker, 0)
	}
	return b.name(kubeflowv1.ReplicaWorker, 0)
}

// rdzvConf is the variable of the settings of a backend.
const rdzvConf = "PET_RDZV_CONF"

// processes returns how many processes each Pod has, if that is a number.
func processes(spec *Spec) int64 {
	if spec.NprocPerNode != nil {
		if n, err := strconv.ParseInt(*spec.NprocPerNode, 10, 32); err == nil {
			return n
		}
	}
	return 1
}

func (b *builder) masterName() string {
	return b.name(kubeflowv1.ReplicaMaster, 0)
}

// waitForMaster returns the container that waits until the master's name has an address.
func (b *builder) waitForMaster() corev1.Container {
	tries := strconv.Itoa(cmp.Or(b.options.InitMaxTries, DefaultInitMaxTries))
	resources := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	container := corev1.Container{
		Name:            "init-pytorch",
		Image:           cmp.Or(b.options.InitImage, DefaultInitImage),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"resolve", "--tries=" + tries, b.masterName()},
		Resources:       corev1.ResourceRequirements{Requests: resources("50m", "10Mi"), Limits: resources("100m", "64Mi")},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if len(b.options.InitCommand) > 0 {
		container.Command, container.Args = b.options.InitCommand, nil
		container.Env = []corev1.EnvVar{{Name: "MASTER_ADDR", Value: b.masterName()}, {Name: "MAX_TRIES", Value: tries}}
	}
	return container
}
