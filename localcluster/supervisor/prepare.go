// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/components"
	"github.com/lockstep-k8s/lockstep/localcluster/pki"
	"github.com/lockstep-k8s/lockstep/localcluster/simnodes"
)

// clusterName is the name of cluster and context in kubeconfigs. A kubeconfig with it is one
// that lockstep-local wrote and may replace.
const clusterName = "lockstep-local"

// prepare writes every file that the programs of the plan read, apart from the real node's.
func prepare(plan *cluster.Plan, now time.Time) error {
	layout := plan.Layout
	if err := os.MkdirAll(layout.Logs(), 0o755); err != nil {
		return fmt.Errorf("making the log directory: %w", err)
	}
	// An unprivileged etcd insists on a directory that only it can read.
	if err := os.MkdirAll(layout.EtcdData(), 0o700); err != nil {
		return fmt.Errorf("making the data directory of etcd: %w", err)
	}
	if err := preparePKI(plan, now); err != nil {
		return err
	}
	if err := writeFile(layout.Config("kwok.yaml"), []byte(simnodes.KwokConfig())); err != nil {
		return err
	}
	if err := writeFile(layout.Config("scheduler.yaml"), []byte(plan.SchedulerConfig())); err != nil {
		return err
	}
	if err := writeFile(layout.Config("Corefile"), []byte(plan.Corefile())); err != nil {
		return err
	}
	if plan.Options.Audit {
		if err := writeFile(layout.Config("audit.yaml"), []byte(plan.AuditPolicy())); err != nil {
			return err
		}
	}
	return linkBinaries(plan)
}

func preparePKI(plan *cluster.Plan, now time.Time) error {
	layout := plan.Layout
	ca, err := pki.NewAuthority("lockstep-local-ca", now)
	if err != nil {
		return err
	}
	if err := writePair(layout, "ca", ca.Pair); err != nil {
		return err
	}
	frontProxy, err := pki.NewAuthority("lockstep-local-front-proxy-ca", now)
	if err != nil {
		return err
	}
	if err := writePair(layout, "front-proxy-ca", frontProxy.Pair); err != nil {
		return err
	}
	signing, err := pki.SigningKey()
	if err != nil {
		return err
	}
	if err := writePair(layout, "service-accounts", signing); err != nil {
		return err
	}
	local := net.IPv4(127, 0, 0, 1)
	bridge := net.IP(plan.Network.Bridge().AsSlice())
	servers := map[string]struct {
		dns       []string
		addresses []net.IP
	}{
		"etcd": {[]string{"localhost"}, []net.IP{local}},
		components.APIServer: {
			[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			[]net.IP{local, bridge, plan.Network.APIService().AsSlice()},
		},
		components.ControllerManager: {[]string{"localhost"}, []net.IP{local}},
		"kubelet-server":             {[]string{cluster.RealNodeName}, []net.IP{bridge}},
	}
	for name, server := range servers {
		pair, err := ca.Server(name, server.dns, server.addresses, now)
		if err != nil {
			return err
		}
		if err := writePair(layout, name, pair); err != nil {
			return err
		}
	}
	return prepareClients(plan, ca, now)
}

// prepareClients makes a certificate for each identity, and a kubeconfig with it.
func prepareClients(plan *cluster.Plan, ca *pki.Authority, now time.Time) error {
	layout := plan.Layout
	for _, id := range append(cluster.Identities(), cluster.Admin(), cluster.KubeletClient()) {
		pair, err := ca.Client(id.User, id.Groups, now)
		if err != nil {
			return err
		}
		if err := writePair(layout, id.Name, pair); err != nil {
			return err
		}
		path := layout.ComponentKubeconfig(id.Name)
		if id.Name == cluster.Admin().Name {
			path = layout.Kubeconfig()
		}
		content, err := kubeconfig(plan.Server(), ca.Cert, pair)
		if err != nil {
			return err
		}
		if err := writeFile(path, content); err != nil {
			return err
		}
		if id.Name == cluster.Admin().Name && plan.Options.Kubeconfig != "" {
			if err := writeFile(plan.Options.Kubeconfig, content); err != nil {
				return fmt.Errorf("--kubeconfig: %w", err)
			}
		}
	}
	return nil
}

func writePair(layout cluster.Layout, name string, pair pki.Pair) error {
	if err := writeFile(layout.Cert(name), pair.Cert); err != nil {
		return err
	}
	return writeFile(layout.Key(name), pair.Key)
}

// kubeconfig holds everything it needs, so that it may be copied elsewhere.
func kubeconfig(server string, ca []byte, pair pki.Pair) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[clusterName] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: clusterName}
	config.CurrentContext = clusterName
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}

// CheckKubeconfig refuses to replace a kubeconfig that lockstep-local did not write.
func CheckKubeconfig(path string) error {
	if path == "" {
		return nil
	}
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--kubeconfig %s exists and cannot be read as a kubeconfig: %w", path, err)
	}
	if _, ours := config.Clusters[clusterName]; len(config.Clusters) > 1 || (!ours && len(config.Clusters) > 0) {
		return fmt.Errorf("--kubeconfig %s exists and holds other clusters: name another file", path)
	}
	return nil
}

// removeKubeconfig removes the additional kubeconfig, if it still is the one of this cluster.
func removeKubeconfig(path, server string) error {
	if path == "" {
		return nil
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil // gone, or replaced by something that is not ours to remove
	}
	if c := config.Clusters[clusterName]; c == nil || c.Server != server {
		return nil
	}
	return os.Remove(path)
}

// linkBinaries makes kubectl and the other binaries reachable under Layout.Bin.
func linkBinaries(plan *cluster.Plan) error {
	dir := plan.Layout.Bin()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of binaries: %w", err)
	}
	for name, path := range plan.Binaries {
		if name == cluster.Controller || name == cluster.Scheduler {
			name = filepath.Base(path)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return nil
}
