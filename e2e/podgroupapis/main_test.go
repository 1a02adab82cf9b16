//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroupapis tests gangs that lockstep-scheduler knows by objects of other projects: PodGroups of
// scheduler-plugins, of Volcano and of Kubernetes itself, and Pods that are a gang by a rule. The tests make the
// objects as the tools of these projects do, in their order; the tools themselves do not run.
//
// The tests share three clusters, as some need what excludes what others need. All run beside each other, with nodes of
// their own where they need to know how much room there is.
//
//	cluster      all rules, the kinds of scheduler-plugins and Volcano, and a controller that makes PodGroups for Jobs,
//	             JobSets and LeaderWorkerSets, and does nothing else: most tests
//	withNative   an API server that serves Kubernetes' own PodGroups and makes some for Jobs; another scheduler
//	             leads under Volcano's name; the kind of scheduler-plugins comes when the scheduler runs
//	reserving    a scheduler that keeps room for members to come, and lets groups of Volcano's in when there is room
package podgroupapis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// The schedulers that tools name in their Pods.
const (
	// ofKubeRay is the scheduler that KubeRay names in the Pods of groups of scheduler-plugins.
	ofKubeRay = "scheduler-plugins-scheduler"
	// ofVolcano is the scheduler that most tools name in the Pods of Volcano's groups.
	ofVolcano = "volcano"
)

// testCluster is a cluster that tests share, with the scheduler that runs on it.
type testCluster struct {
	*testbed.Cluster
	// objects is a client for objects of all kinds.
	objects   dynamic.Interface
	scheduler *localenv.Process
	// address is where the scheduler serves its metrics.
	address string
	// leading is a time at which the scheduler had begun to place Pods.
	leading time.Time
}

// cluster is the cluster of most tests. TestMain sets it once, before any test.
var cluster = &testCluster{}

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 12, NodeCPU: "8", NodePods: 100, With: "none", Audit: true,
	}, useCluster, withNative.beside, reserving.beside))
}

// useCluster starts the scheduler of the cluster that most tests share.
func useCluster(ctx context.Context, c *testbed.Cluster) error {
	if err := cluster.use(c); err != nil {
		return err
	}
	if err := cluster.ApplyManifests(ctx, rightsOfSchedulerPlugins, rightsOfVolcano, rightsOfNative); err != nil {
		return err
	}
	if err := cluster.installKinds(ctx); err != nil {
		return err
	}
	also, err := alsoServed(ctx)
	if err != nil {
		return err
	}
	if err := cluster.runScheduler(ctx, localenv.SchedulerOptions{Args: rules, AlsoServes: []string{also, ofVolcano}}); err != nil {
		return err
	}
	for _, d := range []dialect.Dialect{dialect.SchedulerPlugins, dialect.Volcano} {
		if err := cluster.scheduler.WaitLog(ctx, isOn(d)); err != nil {
			return err
		}
	}
	if err := cluster.RunController(ctx, localenv.ControllerOptions{Args: []string{"--podgroups-only"}}); err != nil {
		return err
	}
	// The programs run when these kinds come.
	if err := errors.Join(jobSets.install(ctx), leaderWorkerSets.install(ctx)); err != nil {
		return err
	}
	return cluster.waitLeading(ctx)
}

// beside is a cluster that some tests share beside the one of most tests.
type beside struct {
	testCluster
	beside *testbed.Beside
}

// startedBeside returns a cluster that use prepares, when the first test gets it.
func startedBeside(o localenv.Options, use func(ctx context.Context, c *testCluster) error) *beside {
	b := &beside{}
	b.beside = &testbed.Beside{Options: o, Use: func(ctx context.Context, c *testbed.Cluster) error {
		if err := b.use(c); err != nil {
			return err
		}
		return use(ctx, &b.testCluster)
	}}
	return b
}

// parallel returns the cluster for a test that runs in parallel with others. The cluster starts before the test calls
// t.Parallel, so that it is ready, or nearly, when the parallel tests begin.
func (b *beside) parallel(t *testing.T) *testCluster {
	t.Helper()
	b.beside.Start()
	t.Parallel()
	return b.get(t)
}

// get returns the cluster, and starts it for the first test.
func (b *beside) get(t *testing.T) *testCluster {
	t.Helper()
	b.beside.Cluster(t)
	return &b.testCluster
}

// The rights that let the scheduler read the groups of others.
const (
	rightsOfSchedulerPlugins = "podgroup-apis/scheduler-plugins.yaml"
	rightsOfVolcano          = "podgroup-apis/volcano.yaml"
	rightsOfNative           = "podgroup-apis/native.yaml"
)

// use makes the clients of a cluster that runs.
func (c *testCluster) use(running *testbed.Cluster) (err error) {
	c.Cluster = running
	c.objects, err = dynamic.NewForConfig(running.Config)
	return err
}

// runScheduler starts the scheduler of the cluster, which serves its metrics.
func (c *testCluster) runScheduler(ctx context.Context, o localenv.SchedulerOptions) (err error) {
	if c.address, err = testbed.FreeAddress(); err != nil {
		return err
	}
	o.Address = c.address
	c.scheduler, err = c.RunSchedulerWith(ctx, o)
	return err
}

// waitLog waits until the scheduler has logged a text.
func (c *testCluster) waitLog(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	if err := c.scheduler.WaitLog(ctx, text); err != nil {
		t.Fatal(err)
	}
}

// waitLeading waits until the scheduler has placed a Pod.
func (c *testCluster) waitLeading(ctx context.Context) error {
	const namespace = "leading"
	if err := c.createFirst(ctx, namespace, testbed.MakePod("first")); err != nil {
		return err
	}
	if err := localenv.Await(ctx, "the scheduler to place a Pod", func(ctx context.Context) (bool, string, error) {
		names, err := c.Placed(ctx, namespace)
		return len(names) == 1, "", err
	}); err != nil {
		return err
	}
	c.leading = time.Now()
	return c.Kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
}

// createFirst creates a namespace and a Pod in it before any test.
func (c *testCluster) createFirst(ctx context.Context, namespace string, pod *corev1.Pod) error {
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := localenv.Await(ctx, "the service account of Pods", func(ctx context.Context) (bool, string, error) {
		_, err := c.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, "", err
	}); err != nil {
		return err
	}
	_, err := c.Kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// isOn returns what the scheduler logs of a PodGroup API that is on and served.
func isOn(d dialect.Dialect) string { return isOnThough(d, "served") }

// isOnThough returns what the scheduler logs of a PodGroup API that is on, with the reason that it gives.
func isOnThough(d dialect.Dialect, reason string) string {
	return `"PodGroup API" group="` + d.Kind().Group + `" on=true mode="Auto" reason="` + reason + `"`
}

// installKinds installs the kinds of scheduler-plugins and Volcano.
func (c *testCluster) installKinds(ctx context.Context) error {
	if err := c.installKind(ctx, upstream.SchedulerPlugins, dialect.SchedulerPlugins.CRD()); err != nil {
		return err
	}
	return c.installKind(ctx, upstream.Volcano, dialect.Volcano.CRD())
}

// installKind installs a CustomResourceDefinition, and waits until the API server serves its kind.
func (c *testCluster) installKind(ctx context.Context, definition, name string) error {
	if out, err := c.KubectlApply(ctx, "default", definition); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd/"+name); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// alsoServed returns the scheduler names that the Deployment of the manifests serves besides its own after an
// administrator has done what the documents say. No node runs the Pods of the Deployment here.
func alsoServed(ctx context.Context) (string, error) {
	patch, err := documents.YAML("../../docs/other-podgroups.md", "ALSO_SERVE")
	if err != nil {
		return "", err
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if err := os.Symlink(repository, filepath.Join(cluster.Dir, "lockstep")); err != nil {
		return "", err
	}
	own := filepath.Join(cluster.Dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte("resources: [../lockstep/manifests/scheduler]\n"+patch), 0o600); err != nil {
		return "", err
	}
	if out, err := cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", own); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	deployment, err := cluster.Kube.AppsV1().Deployments("lockstep-system").Get(ctx, "lockstep-scheduler", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	for _, arg := range container.Args {
		for _, env := range container.Env {
			arg = strings.ReplaceAll(arg, "$("+env.Name+")", env.Value)
		}
		if also, found := strings.CutPrefix(arg, "--also-serve="); found {
			return also, nil
		}
	}
	return "", fmt.Errorf("the scheduler has no flag for it: %v", container.Args)
}
