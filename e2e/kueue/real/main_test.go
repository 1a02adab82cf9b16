//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package real tests Frameworks and training jobs in queues of Kueue itself, which make e2e-kueue
// builds from its module. Kueue is a process beside the cluster, and its webhooks are called there.
package real

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// cluster and client are what the tests share. TestMain sets them once, before any test.
var (
	cluster *testbed.Cluster
	client  dynamic.Interface
)

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "scheduler",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		var err error
		if client, err = dynamic.NewForConfig(c.Config); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		if err := c.ApplyManifests(ctx, "kueue/rbac.yaml"); err != nil {
			return err
		}
		if err := startKueue(ctx, c); err != nil {
			return err
		}
		return c.RunController(ctx, localenv.ControllerOptions{Config: "kueue: {enabled: true}\n" + localenv.WithKubeflowJobs("takeJobs: All").Config})
	}))
}

// startKueue installs Kueue's kinds and webhooks, starts it, and waits until it admits objects.
func startKueue(ctx context.Context, c *testbed.Cluster) error {
	module, err := exec.CommandContext(ctx, "go", "-C", "../../../hack/kueue", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	if err != nil {
		return fmt.Errorf("looking for the module of Kueue: %w", err)
	}
	config := filepath.Join(strings.TrimSpace(string(module)), "config", "components")

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	hooks, err := newWebhooks(c.Dir, port)
	if err != nil {
		return err
	}

	settings := fmt.Sprintf(`
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, webhookSecretName: kueue-webhook-server-cert}
integrations: {frameworks: [kubeflow.org/tfjob]}
`, port, hooks.certDir)
	path := filepath.Join(c.Dir, "kueue.yaml")
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		return err
	}

	if err := hooks.shareCertificate(ctx, c); err != nil {
		return err
	}
	bases, err := filepath.Glob(filepath.Join(config, "crd", "bases", "*.yaml"))
	if err != nil || len(bases) == 0 {
		return fmt.Errorf("%d kinds of Kueue in %s: %w", len(bases), config, err)
	}
	for _, base := range append(bases, filepath.Join(config, "webhook", "manifests.yaml")) {
		if err := hooks.install(ctx, c, base); err != nil {
			return err
		}
	}
	if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd/workloads.kueue.x-k8s.io", "crd/resourceflavors.kueue.x-k8s.io", "crd/clusterqueues.kueue.x-k8s.io", "crd/localqueues.kueue.x-k8s.io"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	kueue, err := localenv.Start(ctx, filepath.Join(c.Logs(), "kueue.log"), "kueue", "--config="+path, "--kubeconfig="+filepath.Join(c.Dir, "kubeconfig"), "--feature-gates=VisibilityOnDemand=false")
	if err != nil {
		return err
	}
	// The simulated nodes are those of the flavor.
	if out, err := c.Kubectl(ctx, "label", "nodes", "--all", "flavour=spot"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	const patience = 90 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("timed out after %v", patience))
	defer cancel()
	for {
		out, err := c.KubectlApply(ctx, "default", spot)
		if err == nil {
			return nil
		}
		select {
		case <-kueue.Done():
			return fmt.Errorf("Kueue has ended: %s", kueue.LogTail(4000))
		case <-ctx.Done():
			return fmt.Errorf("%w: %s\n%s", context.Cause(ctx), out, kueue.LogTail(4000))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// spot is a flavor of quota.
const spot = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec:
  nodeLabels: {flavour: spot}
`

// webhooks are those of Kueue, called at a port of this machine.
type webhooks struct {
	url, certDir string
	// ca, with its key, has signed the certificate that they show. All are in PEM.
	ca, caKey, cert, key []byte
}

// newWebhooks writes the certificate that Kueue serves with into a folder.
func newWebhooks(dir string, port int) (*webhooks, error) {
	w := &webhooks{url: fmt.Sprintf("https://127.0.0.1:%d", port), certDir: filepath.Join(dir, "kueue-certs")}
	if err := w.sign(); err != nil {
		return nil, fmt.Errorf("making a certificate for Kueue: %w", err)
	}
	if err := os.MkdirAll(w.certDir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"tls.crt": w.cert, "tls.key": w.key} {
		if err := os.WriteFile(filepath.Join(w.certDir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// sign makes the certificate, for the address at which the webhooks are called and for the name that Kueue
// expects in it.
func (w *webhooks) sign() error {
	var keys [2]*rsa.PrivateKey // Kueue reads no other keys.
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return err
		}
	}
	ca, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "kueue-ca", Organization: []string{"kueue"}}, keys[0])
	if err != nil {
		return err
	}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: kueueService}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{kueueService}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, &keys[1].PublicKey, keys[0])
	if err != nil {
		return err
	}
	encode := func(der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
	}
	w.ca, w.cert = encode(ca.Raw), encode(signed)
	if w.caKey, err = keyutil.MarshalPrivateKeyToPEM(keys[0]); err != nil {
		return err
	}
	w.key, err = keyutil.MarshalPrivateKeyToPEM(keys[1])
	return err
}

// kueueService is the name that Kueue expects in its certificate.
const kueueService = "kueue-webhook-service." + kueueNamespace + ".svc"

const kueueNamespace = "kueue-system"

// shareCertificate has Kueue find the certificate where it would keep its own.
func (w *webhooks) shareCertificate(ctx context.Context, c *testbed.Cluster) error {
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kueueNamespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.Kube.CoreV1().Secrets(kueueNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "kueue-webhook-server-cert"},
		Data:       map[string][]byte{"ca.crt": w.ca, "ca.key": w.caKey, "tls.crt": w.cert, "tls.key": w.key},
	}, metav1.CreateOptions{})
	return err
}

// clientConfig has the API server call a path of Kueue.
func (w *webhooks) clientConfig(path string) map[string]any {
	return map[string]any{"url": w.url + path, "caBundle": base64.StdEncoding.EncodeToString(w.ca)}
}

// served are the groups of whose objects Kueue is asked. Those of others have kinds that the
// cluster has not, or would keep its own Pods waiting.
var served = map[string]bool{"kueue.x-k8s.io": true, "kubeflow.org": true}

// converted are the kinds of whose versions Kueue converts one into the other, by its own Kustomization.
var converted = map[string]bool{"localqueues": true, "clusterqueues": true, "cohorts": true, "workloads": true, "multikueueclusters": true}

// install creates the objects of one of Kueue's manifests, and has their webhooks be called here.
func (w *webhooks) install(ctx context.Context, c *testbed.Cluster, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, document := range strings.Split(string(content), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		switch object["kind"] {
		case nil:
			continue
		case "CustomResourceDefinition":
			spec := object["spec"].(map[string]any)
			if converted[spec["names"].(map[string]any)["plural"].(string)] {
				spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
					"clientConfig": w.clientConfig("/convert"), "conversionReviewVersions": []string{"v1"},
				}}
			}
		default:
			var kept []any
			for _, item := range object["webhooks"].([]any) {
				hook := item.(map[string]any)
				rule := hook["rules"].([]any)[0].(map[string]any)
				resource := rule["resources"].([]any)[0].(string)
				if group := rule["apiGroups"].([]any)[0].(string); !served[group] || group == "kubeflow.org" && !strings.HasPrefix(resource, "tfjobs") {
					continue
				}
				service := hook["clientConfig"].(map[string]any)["service"].(map[string]any)
				hook["clientConfig"] = w.clientConfig(service["path"].(string))
				kept = append(kept, hook)
			}
			object["webhooks"] = kept
			metadata := object["metadata"].(map[string]any)
			metadata["name"] = "kueue-" + metadata["name"].(string)
		}
		manifest, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		// Too large for what kubectl apply notes down.
		file := filepath.Join(c.Dir, "kueue-object.yaml")
		if err := os.WriteFile(file, manifest, 0o600); err != nil {
			return err
		}
		if out, err := c.Kubectl(ctx, "create", "-f", file); err != nil {
			return fmt.Errorf("%s: %w: %s", path, err, out)
		}
	}
	return nil
}
