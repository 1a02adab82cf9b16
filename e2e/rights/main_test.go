//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights tests that the roles of the manifests are the least with which Lockstep works. The
// programs run as their service accounts, with everything switched on, a walk leads through all
// they do, and the audit log of the API server says what they have asked for.
package rights

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
	"github.com/lockstep-k8s/lockstep/manifests"
)

// cluster is what the tests share, objects a client for all kinds, scheduler the one that runs, and
// the others are where the programs serve their metrics. TestMain sets them once, before any test.
var (
	cluster                             *testbed.Cluster
	objects                             dynamic.Interface
	scheduler                           *localenv.Process
	schedulerAddress, controllerAddress string
)

// config switches on all that lockstep-controller does.
const config = `
leaderElection: {enabled: true}
frameworkCompletedRetainSec: 1
volcanoJobs: {enabled: true, schedulerNames: [lockstep-scheduler, volcano, '']}
kubeflowJobs: {enabled: true, takeJobs: All}
kueue: {enabled: true}
`

func TestMain(m *testing.M) {
	// What an informer asks for depends on the API server: a watch that begins with what is there,
	// or a list and a watch. Both have to be granted; the second is the one that uses both.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		panic(err)
	}
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 3, NodeCPU: "100", NodePods: 400, With: "none", Audit: true,
		RuntimeConfig: "scheduling.k8s.io/v1beta1=true", FeatureGates: "GenericWorkload=true",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		var err error
		if objects, err = dynamic.NewForConfig(c.Config); err != nil {
			return err
		}
		if err := install(ctx, c); err != nil {
			return err
		}
		if err := startScheduler(ctx, c); err != nil {
			return err
		}
		return startController(ctx)
	}))
}

// controller is the one that runs.
var controller *localenv.Controller

func startController(ctx context.Context) error {
	address, port, err := freePort()
	if err != nil {
		return err
	}
	controllerAddress = address
	if controller, err = cluster.Cluster.StartController(ctx, localenv.ControllerOptions{
		Config: config, Args: []string{"--bind-address=127.0.0.1", "--secure-port=" + port},
	}); err != nil {
		return err
	}
	return controller.WaitReady(ctx)
}

// restartController ends the controller and starts another one.
func restartController(t *testing.T) {
	t.Helper()
	if err := controller.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Not by the context of a test: the others go on with it.
	if err := startController(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// install installs all kinds that Lockstep knows, and all roles of the manifests.
func install(ctx context.Context, c *testbed.Cluster) error {
	if err := c.InstallVolcanoJobs(ctx); err != nil {
		return err
	}
	if err := c.InstallKubeflowJobs(ctx); err != nil {
		return err
	}
	apply := []string{
		upstream.SchedulerPlugins,
		kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "Namespaced", ""),
		kind("jobset.x-k8s.io", "v1alpha2", "JobSet", "Namespaced", "{status: {}}"),
		kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "Namespaced", "{status: {}}"),
		kind("kueue.x-k8s.io", "v1beta2", "Workload", "Namespaced", "{status: {}}"),
		kind("kueue.x-k8s.io", "v1beta2", "ResourceFlavor", "Cluster", ""),
	}
	for _, pattern := range []string{"podgroup-apis/*.yaml", "kueue/rbac.yaml"} {
		files, err := manifests.Read(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			apply = append(apply, string(file.Content))
		}
	}
	for _, manifest := range apply {
		if out, err := c.KubectlApply(ctx, "default", manifest); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return c.ApplyOnceServed(ctx, "default", "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}, spec: {}}")
}

// kind is the manifest of a kind with any fields.
func kind(group, version, name, scope, subresources string) string {
	if subresources == "" {
		subresources = "{}"
	}
	singular := strings.ToLower(name)
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]ss.%[2]s
  annotations: {api-approved.kubernetes.io: "unapproved, of a test"}
spec:
  group: %[2]s
  names: {plural: %[1]ss, singular: %[1]s, kind: %[4]s}
  scope: %[5]s
  versions:
  - name: %[3]s
    served: true
    storage: true
    subresources: %[6]s
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, singular, group, version, name, scope, subresources)
}

// startScheduler starts lockstep-scheduler with all rules, an election, and its metrics, and waits
// until it serves PodGroups of all kinds.
func startScheduler(ctx context.Context, c *testbed.Cluster) (err error) {
	if schedulerAddress, err = testbed.FreeAddress(); err != nil {
		return err
	}
	scheduler, err = c.StartSchedulerWith(ctx, localenv.SchedulerOptions{
		Args:    "groupingRules: [Annotations, KueuePods, MinAvailable, JobSets, LeaderWorkerSets, Jobs]",
		Elected: true, Address: schedulerAddress, AlsoServes: []string{"volcano"}, Flags: []string{"--feature-gates=WatchListClient=false"},
	})
	if err != nil {
		return err
	}
	for _, group := range []string{"scheduling.k8s.io", "scheduling.x-k8s.io", "scheduling.volcano.sh"} {
		if err := scheduler.WaitLog(ctx, `"PodGroup API" group="`+group+`" on=true`); err != nil {
			return fmt.Errorf("%w\n%s", err, scheduler.LogTail(4000))
		}
	}
	return nil
}

// freePort is one of this machine that nobody listens on.
func freePort() (address, port string, err error) {
	if address, err = testbed.FreeAddress(); err != nil {
		return "", "", err
	}
	_, port, err = net.SplitHostPort(address)
	return address, port, err
}
