// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// svcPlugin gives the Pods of a Job DNS names, and gives their containers the names of all Pods.
type svcPlugin struct {
	b                  *builder
	publishNotReady    bool
	disableNetwork     bool
	injectHosts        bool
	volume, configName string
	data               func() map[string]string
	// env are the variables that the ConfigMap has, the same for all containers.
	env []corev1.EnvVar
}

// hostsPath is where containers find the ConfigMap.
const hostsPath = "/etc/volcano"

func newSvcPlugin(b *builder, flags []string) (plugin, string) {
	p := &svcPlugin{b: b, injectHosts: true, volume: volumeName(b.job.Name, "svc"), configName: svcConfigName(b.job.Name)}
	f := newPluginFlags(batchv1alpha1.PluginSvc)
	f.toggle(&p.publishNotReady, "publish-not-ready-addresses")
	f.toggle(&p.disableNetwork, "disable-network-policy")
	f.toggle(&p.injectHosts, "inject-hosts-env")
	problem := f.parse(flags)
	p.data = sync.OnceValue(p.render)
	if p.injectHosts {
		for place := range b.spec.Tasks {
			hosts, number := p.keysOf(place)
			p.env = append(p.env, p.variable(hosts), p.variable(number))
		}
	}
	return p, problem
}

func (p *svcPlugin) change(pod *corev1.Pod, _ int, _ int32) {
	pod.Spec.Hostname = cmp.Or(pod.Spec.Hostname, pod.Name)
	pod.Spec.Subdomain = cmp.Or(pod.Spec.Subdomain, p.b.job.Name)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: p.volume,
		VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.configName},
		}},
	})
	for _, container := range jobpods.AllContainers(&pod.Spec) {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: p.volume, MountPath: hostsPath})
		for _, variable := range p.env {
			container.Env = append(container.Env, *variable.DeepCopy())
		}
	}
}

func (p *svcPlugin) variable(key string) corev1.EnvVar {
	return corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: p.configName},
		Key:                  key,
	}}}
}

// keysOf returns the names of two variables: for the hosts of a task, and for the number of these hosts.
func (p *svcPlugin) keysOf(place int) (hosts, number string) {
	name := strings.ToUpper(underscored(p.b.spec.Tasks[place].Name))
	return "VC_" + name + "_HOSTS", "VC_" + name + "_NUM"
}

// underscored returns the name of a task as a part of a variable's name.
func underscored(task string) string { return strings.ReplaceAll(task, "-", "_") }

// render returns the data of the ConfigMap: for each task a file with its hosts, and the two variables with the hosts
// and with their number.
func (p *svcPlugin) render() map[string]string {
	data := make(map[string]string, 3*len(p.b.spec.Tasks))
	for place := range p.b.spec.Tasks {
		hosts := p.b.hosts(place, p.b.distinctHosts(place))
		hostsKey, numberKey := p.keysOf(place)
		data[underscored(p.b.spec.Tasks[place].Name)+".host"] = strings.Join(hosts, "\n")
		data[hostsKey] = strings.Join(hosts, ",")
		data[numberKey] = strconv.Itoa(len(hosts))
	}
	return data
}

// size returns the size of the data in bytes, without rendering.
func (p *svcPlugin) size() int {
	size := 0
	for place := range p.b.spec.Tasks {
		number := int(p.b.distinctHosts(place))
		list := p.b.bytesOf(place, p.b.host) + max(0, number-1)
		hostsKey, numberKey := p.keysOf(place)
		size += len(p.b.spec.Tasks[place].Name) + len(".host") + list +
			len(hostsKey) + list + len(numberKey) + len(strconv.Itoa(number))
	}
	return size
}

// largestVariable is the size of a variable, in bytes, above which a warning says that programs may fail to start.
// Linux allows 128 KiB for one variable.
const largestVariable = 100 << 10

// largeValues returns the variables that are, or will soon be, too large.
func (p *svcPlugin) largeValues() []string {
	if !p.injectHosts {
		return nil
	}
	var warnings []string
	for place := range p.b.spec.Tasks {
		// All names of a task's hosts are at most as long as the last one's.
		n := int(p.b.distinctHosts(place))
		if n == 0 || n*(len(p.b.host(place, int32(n-1)))+1) < largestVariable {
			continue
		}
		hostsKey, _ := p.keysOf(place)
		if size := len(p.data()[hostsKey]); size >= largestVariable {
			warnings = append(warnings, fmt.Sprintf("Plugin svc: the variable %s has %d bytes, with more than 128 KiB no program starts: the flag --inject-hosts-env=false leaves such variables out", hostsKey, size))
		}
	}
	return warnings
}

func (p *svcPlugin) objects() []sideObject {
	b := p.b
	members := map[string]string{batchv1alpha1.KeyJobName: b.job.Name, batchv1alpha1.KeyJobNamespace: b.job.Namespace}
	objects := []sideObject{
		{
			Kind: KindConfigMap, Name: p.configName, Plugin: batchv1alpha1.PluginSvc, Follows: true, Digest: digestOf(p.data()),
			Object: &corev1.ConfigMap{ObjectMeta: b.metadata(p.configName), Data: p.data()},
		},
		{
			Kind: KindService, Name: b.job.Name, Plugin: batchv1alpha1.PluginSvc,
			Object: &corev1.Service{
				ObjectMeta: b.metadata(b.job.Name),
				Spec: corev1.ServiceSpec{
					ClusterIP: corev1.ClusterIPNone, Selector: members, PublishNotReadyAddresses: p.publishNotReady,
				},
			},
		},
	}
	if p.disableNetwork {
		return objects
	}
	selector := metav1.LabelSelector{MatchLabels: members}
	return append(objects, sideObject{
		Kind: KindNetworkPolicy, Name: b.job.Name, Plugin: batchv1alpha1.PluginSvc,
		Object: &networkingv1.NetworkPolicy{
			ObjectMeta: b.metadata(b.job.Name),
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: selector,
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &selector}}}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			},
		},
	})
}
