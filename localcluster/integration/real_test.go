// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/localcluster/cluster"
	"github.com/lockstep-k8s/lockstep/localcluster/image"
)

const toolImage = "lockstep.test/tool:1"

// loadTool brings an image with the program in testdata/tool to the node.
func loadTool(t *testing.T, c *local) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "tool")
	build := exec.Command("go", "build", "-o", binary, "./testdata/tool")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tool: %v\n%s", err, out)
	}
	target := filepath.Join(dir, "tool.tar")
	tool := image.Image{
		Reference:  toolImage,
		Binaries:   []image.File{{Path: "/tool", Source: binary}},
		Entrypoint: []string{"/tool"},
	}
	if err := tool.Write(target); err != nil {
		t.Fatal(err)
	}
	c.mustRun("load-image", "--dir", c.layout.Dir, target)
}

func toolPod(name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName:      cluster.RealNodeName,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: toolImage, ImagePullPolicy: corev1.PullNever, Args: args,
			}},
		},
	}
}

func TestRealNode(t *testing.T) {
	if os.Geteuid() != 0 {
		out := (&local{t: t}).run("up", "--dir", shortDir(t), "--with=none", "--real-node")
		if !strings.Contains(out, "--real-node needs root") {
			t.Errorf("without root, up says:\n%s", out)
		}
		return
	}
	c := up(t, "--real-node", "--real-node-cpu=500m")
	loadTool(t, c)

	t.Run("a container's exit code and output are seen", func(t *testing.T) {
		c := &local{t: t, layout: c.layout, client: c.client}
		c.create(toolPod("exits", "exit", "3"))
		pod := c.waitPod("exits", "fails", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
			t.Errorf("exit code %d, want 3", code)
		}
		if out := podLog(t, c, "exits"); !strings.Contains(out, "exiting with 3") {
			t.Errorf("log of the Pod: %q", out)
		}
	})
	t.Run("Pods find each other by names of a headless Service", func(t *testing.T) {
		c := &local{t: t, layout: c.layout, client: c.client}
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "peers"},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "server"}},
		}
		if _, err := c.client.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		server := toolPod("server", "serve")
		server.Spec.Hostname, server.Spec.Subdomain = "server", "peers"
		c.create(server)
		c.create(toolPod("client", "dial", "server.peers.default.svc.cluster.local"))
		c.waitPod("client", "succeeds", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	})
	t.Run("Pods reach the API server under its cluster IP", func(t *testing.T) {
		c := &local{t: t, layout: c.layout, client: c.client}
		c.create(toolPod("in-cluster", "api"))
		c.waitPod("in-cluster", "succeeds", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	})
	t.Run("the node offers what was asked for", func(t *testing.T) {
		node, err := c.client.CoreV1().Nodes().Get(t.Context(), cluster.RealNodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := node.Status.Allocatable.Cpu(), resource.MustParse("500m"); got.Cmp(want) != 0 {
			t.Errorf("allocatable processors %s, want %s", got, &want)
		}
	})

	other := up(t, "--real-node")
	kill(t, c.supervisorPID())
	c.expectNothingLeft()
	eventually(t, "the other node is still ready", func(ctx context.Context) (bool, error) {
		return strings.Contains(other.run("status", "--dir", other.layout.Dir), "1 of 1 nodes ready"), nil
	})
	other.mustRun("down", "--dir", other.layout.Dir)
	if left := leftovers(t, other.layout.Dir); left != "" {
		t.Errorf("after down there still is %s", left)
	}
}

func podLog(t *testing.T, c *local, pod string) string {
	t.Helper()
	out, err := c.client.CoreV1().Pods(metav1.NamespaceDefault).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
