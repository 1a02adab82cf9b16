//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// part runs a part of a test on the cluster of the test.
func (w *world) part(name string, run func(w *world)) {
	w.t.Run(name, func(t *testing.T) { run(&world{w.Cluster, t}) })
}

// TestLockstepRunsOnAKubernetesVersion: on that of the flag -kubernetes-version, with
// which `make e2e-versions` calls it for one version after the other. Without the flag
// it is the newest.
func TestLockstepRunsOnAKubernetesVersion(t *testing.T) {
	w := up(t, localenv.Options{KubernetesVersion: testbed.KubernetesVersion()})
	info, err := w.Kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := testbed.KubernetesVersion(); want != "" && !strings.HasPrefix(info.GitVersion, "v"+want+".") {
		t.Fatalf("the API server is of version %s, want %s", info.GitVersion, want)
	}
	t.Logf("the API server is of version %s", info.GitVersion)
	w.StartController(t, localenv.ControllerOptions{}).WaitReady(t)
	w.install()
	scheduler := w.startScheduler(ofVolcano)

	w.part("ordinary Pods are placed", func(w *world) {
		w.pod("ordinary")
		w.pod("of-the-default-scheduler", func(pod *corev1.Pod) { pod.Spec.SchedulerName = "" })
		w.waitPlaced(time.Until(scheduler.Started.Add(promptly)), "ordinary", "of-the-default-scheduler")
		w.delete("ordinary", "of-the-default-scheduler")
	})
	w.part("a gang is placed whole and runs to its end", gangRuns)
	w.part("a gang of scheduler-plugins' is placed whole", othersGangIsPlaced(ofSchedulerPlugins()))
	w.part("a gang of Volcano's is placed whole", othersGangIsPlaced(ofVolcanos()))
	w.part("a Pod with a resource claim gets its device, or is told", claimIsMet)
	w.part("wrong objects are refused", wrongObjectsAreRefused)
	w.part("the manifests are taken", func(w *world) {
		for _, manifests := range [][]string{{"-k", "../../manifests"}, {"-k", "../../manifests/volcano"},
			{"-f", "../../manifests/volcano/batch.volcano.sh_jobs.yaml", "-f", "../../manifests/volcano/bus.volcano.sh_commands.yaml"}} {
			if out, err := w.Kubectl(w.t.Context(), append([]string{"apply", "--dry-run=server", "--validate=strict"}, manifests...)...); err != nil {
				w.t.Errorf("%v: %s", err, out)
			}
		}
	})
	w.part("the scheduler says once what is off", func(w *world) {
		switch {
		case !w.serves("resourceclaims"):
			w.saidOnce(scheduler, "resourceclaims, resourceslices, deviceclasses of resource.k8s.io/v1")
		case !w.serves("devicetaintrules"):
			w.saidOnce(scheduler, "devicetaintrules of resource.k8s.io/v1")
		default:
			if remarks := w.remarks(scheduler); len(remarks) > 0 {
				w.t.Errorf("it says %q of an API server that has everything", remarks)
			}
		}
		for _, remark := range w.remarks(scheduler) {
			w.t.Log(remark)
			if !strings.Contains(remark, "API server "+info.GitVersion+" ") {
				w.t.Errorf("it says %q of version %s", remark, info.GitVersion)
			}
		}
	})
}

// serves tells whether the API server serves a resource of resource.k8s.io/v1.
func (w *world) serves(name string) bool {
	w.t.Helper()
	served, err := discovery.IsResourceEnabled(w.Kube.Discovery(), resourcev1.SchemeGroupVersion.WithResource(name))
	if err != nil {
		w.t.Fatal(err)
	}
	return served
}

// delete deletes Pods and waits until they are gone.
func (w *world) delete(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.Kube.CoreV1().Pods(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
		testbed.Eventually(w.t, "Pod "+name+" to be gone", func(ctx context.Context) (bool, string, error) {
			_, err := w.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), "", nil
		})
	}
}

// gangRuns has a Framework wait as a whole for room, and then run.
func gangRuns(w *world) {
	const tasks = 4
	w.pod("in-the-way", testbed.WithCores(coresOfNode-tasks+1))
	w.waitPlaced(testbed.Patience, "in-the-way")
	fw := jobs.MakeFramework("gang").Gang().
		Role("worker", tasks, jobs.RunFor(time.Second, 0).CPU("1").Scheduler("lockstep-scheduler").Completes(1, tasks)).Obj()
	if _, err := w.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Create(w.t.Context(), fw, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.WaitFramework(w.t, namespace, fw.Name, "be told that there is no room", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.AttemptStatus.PodGroup != nil && fw.Status.AttemptStatus.PodGroup.Unschedulable != nil &&
			fw.Status.AttemptStatus.PodGroup.Unschedulable.Reason == schedulingv1alpha1.ReasonNotEnoughResources
	})
	pods, err := w.PodsOf(w.t.Context(), namespace, fw.Name)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(pods) != tasks {
		w.t.Errorf("it has %d Pods, want %d", len(pods), tasks)
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			w.t.Errorf("%s of a gang that does not fit has a node", pod.Name)
		}
	}

	w.delete("in-the-way")
	done := w.WaitFrameworkState(w.t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if end := done.Status.AttemptStatus.CompletionStatus; end == nil || end.Type.Name != frameworkv1.CompletionTypeSucceeded {
		w.t.Errorf("it ended so: %s", localenv.DescribeFramework(done))
	}
	if done.Status.AttemptStatus.ID != 0 {
		w.t.Errorf("it took %d retries", done.Status.AttemptStatus.ID)
	}
}

// claimIsMet has a Pod wait for a device and get it, where the API server knows devices.
// Elsewhere the Pod waits, unless the API server has dropped its claim.
func claimIsMet(w *world) {
	const driver = "devices.example.com"
	w.pod("claiming", claiming("gpu"))
	defer w.delete("claiming")
	stored, err := w.Kube.CoreV1().Pods(namespace).Get(w.t.Context(), "claiming", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	switch {
	case w.serves("resourceclaims"):
		w.claim("gpu", driver)
		w.waitTold("claiming", driver)
		w.offer(driver)
		w.waitPlaced(testbed.Patience, "claiming")
	case len(stored.Spec.ResourceClaims) > 0:
		w.waitTold("claiming", `could not find ResourceClaim "default/gpu"`)
	default:
		w.t.Log("the API server has dropped the claim of the Pod, which is an ordinary one then")
		w.waitPlaced(testbed.Patience, "claiming")
	}
}

// wrongObjectsAreRefused by each kind of validation rule in the CRDs: on a name, on text,
// on a map, on sums over lists, and on what an object was before.
func wrongObjectsAreRefused(w *world) {
	apply := func(kind, name, spec string) (string, error) {
		apiVersion := frameworkv1.SchemeGroupVersion
		if kind == "PodGroup" {
			apiVersion = schedulingv1alpha1.SchemeGroupVersion
		}
		return w.KubectlApply(w.t.Context(), namespace, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %q}\nspec: %s\n", apiVersion, kind, name, spec))
	}
	for name, tc := range map[string]struct {
		kind, name   string
		before, spec string
		want         string // a part of what kubectl says; empty if the object is taken
	}{
		"a Framework in order": {
			kind: "Framework", spec: "{executionType: Create, gang: {minMember: 3}, taskRoles: [{name: ps, taskNumber: 1}, {name: worker, taskNumber: 3, minMember: 2}]}",
		},
		"a PodGroup in order": {
			kind: "PodGroup", spec: "{minMember: 3, minRoleMember: {ps: 1, worker: 2}, queue: a, priorityClassName: high, topology: [{key: rack, mode: Required}]}",
		},
		"a Framework whose name is too long": {
			kind: "Framework", name: strings.Repeat("x", 64), spec: "{}",
			want: "metadata.name must be at most 63",
		},
		"a role's name with a hyphen": {
			kind: "Framework", spec: "{taskRoles: [{name: my-worker}]}",
			want: "a task role's name must be",
		},
		"a minimum of a role above its tasks": {
			kind: "Framework", spec: "{gang: {}, taskRoles: [{name: worker, taskNumber: 4, minMember: 5}]}",
			want: "spec.taskRoles[0].minMember: Invalid value",
		},
		"a gang of more than all tasks": {
			kind: "Framework", spec: "{gang: {minMember: 6}, taskRoles: [{name: ps, taskNumber: 1}, {name: worker, taskNumber: 4}]}",
			want: "spec.gang.minMember: Invalid value",
		},
		"too many tasks in all": {
			kind: "Framework", spec: "{taskRoles: [{name: ps, taskNumber: 1}, {name: worker, taskNumber: 10000}]}",
			want: "must have at most 10000 tasks in all",
		},
		"an executionType that goes back": {
			kind: "Framework", before: "{executionType: Stop}", spec: "{executionType: Create}",
			want: "executionType cannot change from Stop to Create",
		},
		"a number that is too large": {
			kind: "Framework", spec: "{retryPolicy: {maxRetryCount: 2147483648}}",
			want: "should be less than or equal to 2147483647",
		},
		"a PodGroup whose name is too long": {
			kind: "PodGroup", name: strings.Repeat("x", 64), spec: "{minMember: 1}",
			want: "metadata.name must be at most 63",
		},
		"a minimum of a role of none": {
			kind: "PodGroup", spec: "{minMember: 1, minRoleMember: {ps: 1, worker: 0}}",
			want: "every value of minRoleMember must be at least 1",
		},
		"a PodGroup that changes": {
			kind: "PodGroup", before: "{minMember: 1}", spec: "{minMember: 1, queue: research, topology: [{key: rack, mode: Required}], disruptionMode: Pod}",
			want: "spec.disruptionMode: Invalid value: ",
		},
		"a field that is none": {
			kind: "PodGroup", spec: "{minMember: 1, minMembers: 1}",
			want: `unknown field "spec.minMembers"`,
		},
	} {
		w.part(name, func(w *world) {
			object := tc.name
			if object == "" {
				object = strings.ReplaceAll(strings.ToLower(name), " ", "-")
				object = strings.ReplaceAll(object, "'", "")
			}
			if tc.before != "" {
				if out, err := apply(tc.kind, object, tc.before); err != nil {
					w.t.Fatalf("%v: %s", err, out)
				}
			}
			out, err := apply(tc.kind, object, tc.spec)
			if (err == nil) != (tc.want == "") || !strings.Contains(out, tc.want) {
				w.t.Errorf("kubectl apply: %v: %s\nwant %q", err, out, tc.want)
			}
		})
	}
}
