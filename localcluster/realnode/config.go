// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// maxPods is what a /24 of Pod addresses and the kubelet's own default allow.
const maxPods = 110

// containerdConfig is containerd's configuration file. Its state lies in the node's own /run,
// which vanishes with the node.
func containerdConfig(plan *cluster.Plan, snapshotter, runc string) string {
	l := plan.Layout
	return fmt.Sprintf(`version = 3
root = %q
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[grpc]
address = %q

[plugins."io.containerd.cri.v1.images"]
snapshotter = %q
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
# Without CAP_SYS_RESOURCE no sandbox could get the score that the kubelet asks for.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%q]
conf_dir = %q
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = %q
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`,
		l.NodePath("containerd"), l.ContainerdSocket(), snapshotter, pauseReference,
		l.NodePath("bin"), l.NodePath("cni", "conf"),
		plan.Binaries[components.ContainerdShim], runc)
}

// cniConfig hangs every Pod on the bridge, with the bridge as its gateway. Pods have no way
// out of the machine: no address translation, hence no iptables.
func cniConfig(plan *cluster.Plan) (string, error) {
	pods := plan.Network.Pods()
	content, err := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "lockstep-local",
		"plugins": []map[string]any{{
			"type":             "bridge",
			"bridge":           plan.Network.BridgeName(),
			"isGateway":        true,
			"isDefaultGateway": true,
			"hairpinMode":      true,
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": plan.Layout.NodePath("cni", "addresses"),
				"ranges": [][]map[string]string{{{
					"subnet":     pods.String(),
					"rangeStart": plan.Network.Bridge().Next().String(),
					"gateway":    plan.Network.Bridge().String(),
				}}},
			},
		}},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the CNI configuration: %w", err)
	}
	return string(content), nil
}

// kubeletConfig is the kubelet's configuration file. cpus is the number of processors of the
// machine.
func kubeletConfig(plan *cluster.Plan, cgroup string, cpus int) (string, error) {
	l := plan.Layout
	config := map[string]any{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"address":            plan.Network.Bridge().String(),
		"port":               plan.Ports.Kubelet,
		"healthzBindAddress": "127.0.0.1",
		"healthzPort":        plan.Ports.KubeletHealth,
		"tlsCertFile":        l.Cert("kubelet-server"),
		"tlsPrivateKeyFile":  l.Key("kubelet-server"),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": l.Cert("ca")},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"clusterDomain":            "cluster.local",
		"clusterDNS":               []string{plan.Network.Bridge().String()},
		"resolvConf":               l.NodePath("resolv.conf"),
		"containerRuntimeEndpoint": "unix://" + l.ContainerdSocket(),
		"podLogsDir":               l.NodePath("pod-logs"),
		"staticPodPath":            l.NodePath("static-pods"),
		"fileCheckFrequency":       "1s",
		"volumePluginDir":          l.NodePath("volume-plugins"),
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + cgroup,
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"enforceNodeAllocatable":   []string{},
		"makeIPTablesUtilChains":   false,
		"oomScoreAdj":              0,
		"maxPods":                  maxPods,
		"serializeImagePulls":      false,
		"shutdownGracePeriod":      "0s",
		// A developer's disk is often nearly full, and evicting Pods would not help it.
		"evictionHard": map[string]string{
			"memory.available": "50Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi",
			"nodefs.inodesFree": "1%", "imagefs.inodesFree": "1%",
		},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
	if q := plan.Options.RealNodeCPU; q != nil {
		if reserved := int64(cpus)*1000 - q.MilliValue(); reserved > 0 {
			config["systemReserved"] = map[string]string{
				"cpu": resource.NewMilliQuantity(reserved, resource.DecimalSI).String(),
			}
		}
	}
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the kubelet configuration: %w", err)
	}
	return string(content), nil
}
