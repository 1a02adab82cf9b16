// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"github.com/lockstep-k8s/lockstep/localcluster/components"
)

// Program is one process of a cluster.
type Program struct {
	// Name is the name of the component: of its log, and in `status`.
	Name string
	// Path is the binary.
	Path string
	Args []string
	// HealthURL answers 200 once the program does its work.
	HealthURL string
	// Address is where it serves, for `status`; empty if it serves nothing.
	Address string
}

// Plan is all that is needed to write down the programs of a cluster.
type Plan struct {
	Options  Options
	Layout   Layout
	Ports    Ports
	Network  Network
	Binaries map[string]string
}

// Server is the URL of the API server.
func (p *Plan) Server() string { return "https://" + loopback(p.Ports.APIServer) }

// ControlPlane lists what has to run before anything can be installed, in order of start.
func (p *Plan) ControlPlane() []Program {
	return []Program{p.etcd(), p.apiServer(), p.controllerManager()}
}

// Lockstep lists the programs of Lockstep that the options ask for.
func (p *Plan) Lockstep() []Program {
	var out []Program
	if p.Options.Starts(Controller) {
		address := loopback(p.Ports.Controller)
		out = append(out, Program{
			Name: Controller,
			Path: p.Binaries[Controller],
			Args: append([]string{
				"--kubeconfig=" + p.Layout.ComponentKubeconfig(Controller),
				"--health-address=" + address,
				"--secure-port=0",
			}, p.Options.ControllerArgs...),
			HealthURL: "http://" + address + "/readyz",
			Address:   address,
		})
	}
	if p.Options.Starts(Scheduler) {
		address := loopback(p.Ports.Scheduler)
		out = append(out, Program{
			Name: Scheduler,
			Path: p.Binaries[Scheduler],
			Args: append([]string{
				"--config=" + p.Layout.Config("scheduler.yaml"),
				"--authentication-kubeconfig=" + p.Layout.ComponentKubeconfig(Scheduler),
				"--authorization-kubeconfig=" + p.Layout.ComponentKubeconfig(Scheduler),
				"--bind-address=127.0.0.1",
				"--secure-port=" + itoa(p.Ports.Scheduler),
			}, p.Options.SchedulerArgs...),
			HealthURL: "https://" + address + "/readyz",
			Address:   address,
		})
	}
	return out
}

func (p *Plan) etcd() Program {
	client := "https://" + loopback(p.Ports.EtcdClient)
	peer := "https://" + loopback(p.Ports.EtcdPeer)
	l := p.Layout
	return Program{
		Name: components.Etcd,
		Path: p.Binaries[components.Etcd],
		Args: []string{
			"--name=local",
			"--data-dir=" + l.EtcdData(),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=local=" + peer,
			"--cert-file=" + l.Cert("etcd"),
			"--key-file=" + l.Key("etcd"),
			"--client-cert-auth",
			"--trusted-ca-file=" + l.Cert("ca"),
			"--peer-cert-file=" + l.Cert("etcd"),
			"--peer-key-file=" + l.Key("etcd"),
			"--peer-client-cert-auth",
			"--peer-trusted-ca-file=" + l.Cert("ca"),
			// The data need not survive a power cut, and disks differ a lot in the cost of fsync.
			"--unsafe-no-fsync",
			"--quota-backend-bytes=" + itoa(8<<30),
			"--log-level=warn",
		},
		HealthURL: client + "/health",
		Address:   loopback(p.Ports.EtcdClient),
	}
}

func (p *Plan) apiServer() Program {
	l := p.Layout
	authorizers := "Node,RBAC"
	var asked []string
	if p.Options.RuntimeConfig != "" {
		// The Node authorizer watches ResourceSlices itself and would never be ready without
		// them. It is for kubelets, and there is none.
		authorizers = "RBAC"
		asked = []string{"--runtime-config=" + p.Options.RuntimeConfig}
	}
	asked = append(asked, p.featureGates()...)
	if p.Options.Audit {
		asked = append(asked,
			"--audit-policy-file="+l.Config("audit.yaml"),
			"--audit-log-path="+l.AuditLog(),
			// A line is there when the request is answered.
			"--audit-log-mode=blocking",
		)
	}
	return Program{
		Name: components.APIServer,
		Path: p.Binaries[components.APIServer],
		Args: append([]string{
			"--bind-address=127.0.0.1",
			"--secure-port=" + itoa(p.Ports.APIServer),
			"--advertise-address=" + p.Network.APIService().String(),
			// The reconciler refuses loopback addresses, and nothing here reads these endpoints.
			"--endpoint-reconciler-type=none",
			"--etcd-servers=https://" + loopback(p.Ports.EtcdClient),
			"--etcd-cafile=" + l.Cert("ca"),
			"--etcd-certfile=" + l.Cert("etcd"),
			"--etcd-keyfile=" + l.Key("etcd"),
			"--service-cluster-ip-range=" + p.Network.Services().String(),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + l.Cert("service-accounts"),
			"--service-account-signing-key-file=" + l.Key("service-accounts"),
			"--client-ca-file=" + l.Cert("ca"),
			// No aggregated API server exists, but schedulers complain without this.
			"--requestheader-client-ca-file=" + l.Cert("front-proxy-ca"),
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--tls-cert-file=" + l.Cert(components.APIServer),
			"--tls-private-key-file=" + l.Key(components.APIServer),
			"--kubelet-client-certificate=" + l.Cert("kubelet-client"),
			"--kubelet-client-key=" + l.Key("kubelet-client"),
			"--kubelet-certificate-authority=" + l.Cert("ca"),
			// No name server of the machine knows the names of our nodes.
			"--kubelet-preferred-address-types=InternalIP",
			"--authorization-mode=" + authorizers,
			// The second one is on in some clusters, and asks for rights of Lockstep's roles that
			// nothing else asks for.
			"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
			"--allow-privileged=true",
			// Gangs come in bursts; the defaults (400 and 200) make a small cluster queue.
			"--max-requests-inflight=3000",
			"--max-mutating-requests-inflight=1500",
		}, asked...),
		HealthURL: p.Server() + "/readyz",
		Address:   loopback(p.Ports.APIServer),
	}
}

func (p *Plan) controllerManager() Program {
	l := p.Layout
	kubeconfig := l.ComponentKubeconfig(components.ControllerManager)
	return Program{
		Name: components.ControllerManager,
		Path: p.Binaries[components.ControllerManager],
		Args: append([]string{
			"--bind-address=127.0.0.1",
			"--secure-port=" + itoa(p.Ports.ControllerManager),
			"--tls-cert-file=" + l.Cert(components.ControllerManager),
			"--tls-private-key-file=" + l.Key(components.ControllerManager),
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + l.Key("service-accounts"),
			"--root-ca-file=" + l.Cert("ca"),
			"--cluster-signing-cert-file=" + l.Cert("ca"),
			"--cluster-signing-key-file=" + l.Key("ca"),
			"--leader-elect=false",
			// It would make the default, which lies under /usr.
			"--flex-volume-plugin-dir=" + l.Config("volume-plugins"),
			// The garbage collector does the clean-up of attempts: the default rate of 20 a
			// second would make a gang of a thousand Pods linger for a minute.
			"--kube-api-qps=2000",
			"--kube-api-burst=4000",
			"--concurrent-gc-syncs=50",
			// Simulated nodes renew their leases every 15 minutes, and a busy small machine is late
			// with it; that is no reason to evict Pods.
			"--node-monitor-period=5s",
			"--node-monitor-grace-period=20m",
		}, p.featureGates()...),
		HealthURL: "https://" + loopback(p.Ports.ControllerManager) + "/healthz",
		Address:   loopback(p.Ports.ControllerManager),
	}
}

// featureGates are the arguments that switch features on and off, none if they are as they come.
func (p *Plan) featureGates() []string {
	if p.Options.FeatureGates == "" {
		return nil
	}
	return []string{"--feature-gates=" + p.Options.FeatureGates}
}

// AuditPolicy is what of requests to the API server is written down, where that is asked for:
// who changed which object when, and not what was in it. Of Lockstep's own programs it is also
// what they have read, and of a watch that it has begun.
func (p *Plan) AuditPolicy() string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users:
  - system:serviceaccount:lockstep-system:lockstep-controller
  - system:serviceaccount:lockstep-system:lockstep-scheduler
  - system:serviceaccount:lockstep-system:lockstep-dashboard
  - system:serviceaccount:default:frameworkbarrier
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`
}

// Kwok is the program that plays the simulated nodes.
func (p *Plan) Kwok() Program {
	address := loopback(p.Ports.Kwok)
	return Program{
		Name: components.Kwok,
		Path: p.Binaries[components.Kwok],
		Args: []string{
			"--kubeconfig=" + p.Layout.ComponentKubeconfig(components.Kwok),
			"--config=" + p.Layout.Config("kwok.yaml"),
			"--server-address=" + address,
		},
		HealthURL: "http://" + address + "/healthz",
		Address:   address,
	}
}

// CoreDNS is the name server of the real node's Pods. It listens on the bridge.
func (p *Plan) CoreDNS() Program {
	return Program{
		Name:      components.CoreDNS,
		Path:      p.Binaries[components.CoreDNS],
		Args:      []string{"-conf=" + p.Layout.Config("Corefile")},
		HealthURL: "http://" + loopback(p.Ports.CoreDNSHealth) + "/ready",
		Address:   p.Network.Bridge().String() + ":53",
	}
}

// Corefile is CoreDNS's configuration. Names outside the cluster do not exist for Pods, which
// have no way out of the machine either: a quick answer beats a time-out.
func (p *Plan) Corefile() string {
	return strings.NewReplacer(
		"BRIDGE", p.Network.Bridge().String(),
		"READY", loopback(p.Ports.CoreDNSHealth),
		"KUBECONFIG", p.Layout.ComponentKubeconfig(components.CoreDNS),
	).Replace(`cluster.local:53 {
    bind BRIDGE
    errors
    ready READY
    kubernetes cluster.local {
        kubeconfig KUBECONFIG
        ttl 1
    }
}
.:53 {
    bind BRIDGE
    errors
    template IN ANY . {
        rcode NXDOMAIN
    }
}
`)
}
