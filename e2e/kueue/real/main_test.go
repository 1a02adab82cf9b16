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
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
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

// cluster and client are what the tests share, and apart is the node of one test. TestMain sets them once, before any test.
var (
	cluster *testbed.Cluster
	client  dynamic.Interface
	apart   string
)

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 4, NodeCPU: "8", NodePods: 100, With: "scheduler",
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
	module := os.Getenv("KUEUE")
	if module == "" {
		return errors.New("KUEUE names no folder with the module of Kueue: start this by make e2e-kueue")
	}
	config := filepath.Join(module, "config", "components")

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

	path := filepath.Join(c.Dir, "kueue.yaml")
	if err := hooks.configure(filepath.Join(config, "manager", "controller_manager_config.yaml"), path); err != nil {
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
	// The simulated nodes are those of the flavor. One is for Pods that tolerate it.
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	apart = nodes.Items[0].Name
	for _, args := range [][]string{{"label", "nodes", "--all", "flavour=spot"}, {"taint", "node", apart, "apart=true:NoSchedule"}} {
		if out, err := c.Kubectl(ctx, args...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
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

// timeout is how long Kueue waits for the Pods of what it has admitted.
const timeout = 15 * time.Second

// configure writes Kueue's configuration: the default one with shorter times, and what it takes to run beside the cluster. To the
// default integrations those of Pods, which is one of them since 0.17, and of TFJobs are added.
func (w *webhooks) configure(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var settings map[string]any
	if err := yaml.Unmarshal(content, &settings); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	settings["health"] = map[string]any{"healthProbeBindAddress": "0"}
	settings["metrics"] = map[string]any{"bindAddress": "0"}
	settings["webhook"] = map[string]any{"host": "127.0.0.1", "port": w.port, "certDir": w.certDir}
	settings["leaderElection"] = map[string]any{"leaderElect": false}
	settings["internalCertManagement"] = map[string]any{"enable": true, "webhookServiceName": "kueue-webhook-service", "webhookSecretName": "kueue-webhook-server-cert"}
	settings["waitForPodsReady"] = map[string]any{"timeout": timeout.String(), "recoveryTimeout": timeout.String(),
		"requeuingStrategy": map[string]any{"backoffBaseSeconds": 1}}
	integrations := settings["integrations"].(map[string]any)
	names := integrations["frameworks"].([]any)
	for _, name := range []any{"pod", "kubeflow.org/tfjob"} {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	integrations["frameworks"] = names
	if content, err = yaml.Marshal(settings); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
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
	port         int
	url, certDir string
	// ca, with its key, has signed the certificate that they show. All are in PEM.
	ca, caKey, cert, key []byte
}

// newWebhooks writes the certificate that Kueue serves with into a folder.
func newWebhooks(dir string, port int) (*webhooks, error) {
	w := &webhooks{port: port, url: fmt.Sprintf("https://127.0.0.1:%d", port), certDir: filepath.Join(dir, "kueue-certs")}
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

// serves reports whether Kueue is asked of the objects of a resource. Those of others are not part of the tests.
func serves(group, resource string) bool {
	return group == "kueue.x-k8s.io" || group == "" && resource == "pods" || group == "kubeflow.org" && strings.HasPrefix(resource, "tfjobs")
}

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
				group := rule["apiGroups"].([]any)[0].(string)
				if !serves(group, resource) {
					continue
				}
				if group == "" { // As Kueue's Kustomization does.
					hook["namespaceSelector"] = map[string]any{"matchExpressions": []any{
						map[string]any{"key": corev1.LabelMetadataName, "operator": "NotIn", "values": []any{metav1.NamespaceSystem, kueueNamespace}}}}
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
