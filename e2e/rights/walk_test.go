//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

const system = "lockstep-system"

// soon is how long each thing may take.
const soon = time.Minute

// TestTheRolesAreMinimal walks through all features, and then holds the rights that were used
// against those that the roles grant.
func TestTheRolesAreMinimal(t *testing.T) {
	restart := jobsAcrossARestart(t)
	t.Run("walk", func(t *testing.T) {
		t.Run("a restart", func(t *testing.T) {
			t.Parallel()
			restart(t)
		})
		for name, scene := range map[string]func(*testing.T){
			"Frameworks":               frameworks,
			"Frameworks in a queue":    queued,
			"Volcano Jobs":             volcanoJobs,
			"a Volcano Job's task":     restartedTask,
			"names of a Volcano Job":   namesOfAVolcanoJob,
			"Kubeflow's jobs":          kubeflowJobs,
			"more jobs of Kubeflow":    kubeflowJobsOfAllSorts,
			"names of a training job":  namesOfATrainingJob,
			"groups of other projects": groups,
			"groups of Jobs":           groupsOfJobs,
			"preemption":               preemption,
			"metrics":                  metricsOfBoth,
			"the web page":             webPage,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scene(t)
			})
		}
	})
	for account, exceptions := range map[string][]exception{
		"lockstep-controller": controllerExceptions,
		"lockstep-scheduler":  ofKubeScheduler(t),
		"lockstep-dashboard":  dashboardExceptions,
	} {
		t.Run(account, func(t *testing.T) {
			var used []grant
			for _, r := range cluster.AuditedAll(t) {
				if r.User != "system:serviceaccount:"+system+":"+account {
					continue
				}
				g := grantOf(r.Verb, r.Group, r.Resource)
				if r.Resource == "" {
					g = grant(r.Verb + " " + r.Path)
				}
				if r.Denied && !slices.Contains(mayBeDenied, g) {
					t.Errorf("%s: it was asked for, and is not granted: %s %s", g, r.Namespace, r.Name)
				}
				used = append(used, g)
			}
			if len(used) == 0 {
				t.Fatal("nothing was written down of what it has asked for")
			}
			for _, problem := range problems(grantsOf(rulesOf(t, account)), used, exceptions) {
				t.Error(problem)
			}
		})
	}
}

// mayBeDenied are rights that are asked for and may be missing.
var mayBeDenied = []grant{
	// The Lease of other schedulers of a name, where the role does not name it: see
	// docs/other-podgroups.md.
	"get leases.coordination.k8s.io",
}

const (
	askedByAdmission = "no request: the admission plugin OwnerReferencesPermissionEnforcement asks for it"
	afterAConflict   = "by its name it is looked whether an object is gone, when a request about it meets a conflict"
)

var controllerExceptions = []exception{
	{grants: "update frameworks/finalizers.frameworkcontroller.microsoft.com", why: askedByAdmission},
	{grants: "update configmaps/finalizers", why: askedByAdmission},
	{grants: "update jobs/finalizers.batch.volcano.sh", why: askedByAdmission},
	{grants: "update tfjobs/finalizers.kubeflow.org", why: askedByAdmission},
	{grants: "update pytorchjobs/finalizers.kubeflow.org", why: askedByAdmission},
	{grants: "update xgboostjobs/finalizers.kubeflow.org", why: askedByAdmission},
	{grants: "update paddlejobs/finalizers.kubeflow.org", why: askedByAdmission},
	{grants: "update jaxjobs/finalizers.kubeflow.org", why: askedByAdmission},
	{grants: "update mpijobs/finalizers.kubeflow.org", why: askedByAdmission},
	{grants: "get commands.bus.volcano.sh", why: afterAConflict, sometimes: true},
	{grants: "get persistentvolumeclaims", why: afterAConflict, sometimes: true},
}

// ofKubeScheduler are the rights that Kubernetes gives its own scheduler, whose plugins run in
// lockstep-scheduler too. Not all of them are in the walk: volumes, devices and so on.
func ofKubeScheduler(t *testing.T) []exception {
	t.Helper()
	var exceptions []exception
	granted := grantsOf(rulesOf(t, "lockstep-scheduler"))
	for _, name := range []string{"system:kube-scheduler", "system:volume-scheduler"} {
		role, err := cluster.Kube.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range grantsOf(role.Rules) {
			named := slices.ContainsFunc(exceptions, func(e exception) bool { return e.grants == string(g) })
			if slices.Contains(granted, g) && !named {
				exceptions = append(exceptions, exception{grants: string(g), why: "in the role " + name, sometimes: true})
			}
		}
	}
	return exceptions
}

// rulesOf are the rules that bindings give to a service account of Lockstep.
func rulesOf(t *testing.T, account string) []rbacv1.PolicyRule {
	t.Helper()
	ctx := t.Context()
	of := func(subjects []rbacv1.Subject) bool {
		return slices.Contains(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: system})
	}
	var rules []rbacv1.PolicyRule
	clusterRole := func(name string) {
		role, err := cluster.Kube.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	everywhere, err := cluster.Kube.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range everywhere.Items {
		if of(binding.Subjects) {
			clusterRole(binding.RoleRef.Name)
		}
	}
	inNamespaces, err := cluster.Kube.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range inNamespaces.Items {
		switch {
		case !of(binding.Subjects):
		case binding.RoleRef.Kind == "ClusterRole":
			clusterRole(binding.RoleRef.Name)
		default:
			role, err := cluster.Kube.RbacV1().Roles(binding.Namespace).Get(ctx, binding.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}

// frameworks begins with a name that is taken, is rescaled, fails, is retried, ends and is deleted
// when it has been kept for long enough.
func frameworks(t *testing.T) {
	namespace := cluster.Namespace(t)
	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "walk-attempt"}}
	if _, err := cluster.Kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fw := jobs.MakeFramework("walk").Gang().Retry(false, 1).
		Role("worker", 2, jobs.RunForever().Completes(1, 3).Scheduler(testbed.GangScheduler)).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFramework(t, namespace, "walk", "be told of the name that is taken", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && len(fw.Status.Conditions) > 0
	})
	if err := cluster.Kube.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "walk-attempt", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	runs := func(attempt, tasks int32) {
		cluster.WaitFramework(t, namespace, "walk", "run", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.AttemptStatus.ID == attempt && fw.Status.Tasks != nil && fw.Status.Tasks.Running == tasks
		})
	}
	runs(0, 2)
	cluster.CreatePod(t, namespace, testbed.MakePod("walk-worker-2", func(pod *corev1.Pod) { pod.Spec.SchedulerName = testbed.ByHand }))
	if out, err := cluster.Kubectl(t.Context(), "patch", "framework", "walk", "-n", namespace, "--type=json",
		`-p=[{"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": 3}]`); err != nil {
		t.Fatal(err, out)
	}
	waitAsked(t, namespace, "get pods")
	cluster.DeletePod(t, namespace, "walk-worker-2")
	runs(0, 3)
	cluster.EndPod(t, namespace, "walk-worker-0", 1)
	runs(1, 3)
	for i := range 3 {
		cluster.EndPod(t, namespace, fmt.Sprintf("walk-worker-%d", i), 0)
	}
	cluster.WaitFrameworkGone(t, namespace, "walk")
}

// queued is admitted by Kueue, evicted, and leaves the queue.
func queued(t *testing.T) {
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("walk").Role("worker", 1, jobs.RunForever().Scheduler(testbed.GangScheduler)).Obj()
	fw.Labels = map[string]string{frameworkv1.LabelQueue: "queue"}
	cluster.CreateFramework(t, namespace, fw)
	workloads := objects.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}).Namespace(namespace)
	var workload string
	testbed.EventuallyWithin(t, soon, "a Workload", func(ctx context.Context) (bool, string, error) {
		list, err := workloads.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false, "", err
		}
		workload = list.Items[0].GetName()
		return true, "", nil
	})
	say := func(status string) {
		t.Helper()
		if _, err := workloads.Patch(t.Context(), workload, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	const now = `"reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"`
	const admitted = `{"type": "QuotaReserved", "status": "True", ` + now + `}, {"type": "Admitted", "status": "True", ` + now + `}`
	say(`{"status": {"conditions": [` + admitted + `], "admission": {"clusterQueue": "all", "podSetAssignments": [{"name": "worker", "count": 1, "flavors": {"cpu": "spot"}}]}}}`)
	cluster.WaitFrameworkState(t, namespace, "walk", frameworkv1.FrameworkAttemptRunning)
	// As it has where Kueue gates Pods.
	if out, err := cluster.Kubectl(t.Context(), "label", "pod", "walk-worker-0", "-n", namespace, frameworkv1.LabelGated+"=true"); err != nil {
		t.Fatal(err, out)
	}
	waitAsked(t, namespace, "patch pods")
	say(`{"status": {"conditions": [` + admitted + `, {"type": "Evicted", "status": "True", ` + now + `}]}}`)
	waitAsked(t, namespace, "patch workloads/status.kueue.x-k8s.io")
	if out, err := cluster.Kubectl(t.Context(), "label", "framework", "walk", "-n", namespace, frameworkv1.LabelQueue+"-"); err != nil {
		t.Fatal(err, out)
	}
	testbed.EventuallyWithin(t, soon, "the Workload to be gone", func(ctx context.Context) (bool, string, error) {
		list, err := workloads.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, "", err
	})
}

// take makes objects that have the names of those that a job is about to make, from a manifest.
func take(t *testing.T, namespace string, manifests ...string) {
	t.Helper()
	if out, err := cluster.KubectlApply(t.Context(), namespace, strings.Join(manifests, "\n---\n")); err != nil {
		t.Fatal(err, out)
	}
}

// waitAsked waits until the controller has used rights in a namespace.
func waitAsked(t *testing.T, namespace string, want ...grant) {
	t.Helper()
	testbed.EventuallyWithin(t, soon, fmt.Sprintf("the controller to ask for %v", want), func(context.Context) (bool, string, error) {
		var asked []grant
		for _, r := range cluster.AuditedAll(t) {
			if r.Namespace == namespace && strings.HasSuffix(r.User, ":lockstep-controller") {
				asked = append(asked, grantOf(r.Verb, r.Group, r.Resource))
			}
		}
		for _, g := range want {
			if !slices.Contains(asked, g) {
				return false, "not for " + string(g), nil
			}
		}
		return true, "", nil
	})
}

// volcanoJobs have all plugins and a claim, are rescaled, restarted, stopped and resumed, and are
// deleted when they have ended.
func volcanoJobs(t *testing.T) {
	j := cluster.GivenVolcanoJob(t, "{minAvailable: 1, ttlSecondsAfterFinished: 0, plugins: {env: [], svc: [], ssh: []}, volumes: [{mountPath: /out, "+
		"volumeClaim: {storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], "+
		"tasks: [{name: a, replicas: 2, @∞}]}")
	bindClaim(t, j.Namespace)
	j.HasPods("j-a-0", "j-a-1").Edit(func(spec *batchv1alpha1.JobSpec) { spec.Tasks[0].Replicas = 3 }).HasPods("j-a-0", "j-a-1", "j-a-2")
	j.Do(busv1alpha1.ActionRestartJob).Passes(batchv1alpha1.JobRestarting).HasPods("j-a-0", "j-a-1", "j-a-2")
	waitAsked(t, j.Namespace, "patch configmaps")
	j.Do(busv1alpha1.ActionAbortJob).Passes(batchv1alpha1.JobAborted)
	j.Do(busv1alpha1.ActionResumeJob).HasPods("j-a-0", "j-a-1", "j-a-2")
	j.Do(busv1alpha1.ActionTerminateJob).IsGone()
}

// restartedTask has one of its Pods fail, and the others are restarted with it.
func restartedTask(t *testing.T) {
	j := cluster.GivenVolcanoJob(t, "{minAvailable: 1, tasks: [{name: a, replicas: 2, policies: [{event: PodFailed, action: RestartTask}], @2→1}]}")
	waitAsked(t, j.Namespace, "patch pods")
}

// bindClaim makes a volume for the claim of a namespace, once it is there.
func bindClaim(t *testing.T, namespace string) {
	t.Helper()
	testbed.EventuallyWithin(t, soon, "a claim", func(ctx context.Context) (bool, string, error) {
		claims, err := cluster.Kube.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(claims.Items) == 0 {
			return false, "", err
		}
		cluster.BindClaim(t, namespace, claims.Items[0].Name, "/tmp")
		return true, "", nil
	})
}

// namesOfAVolcanoJob are taken when it begins.
func namesOfAVolcanoJob(t *testing.T) {
	namespace := cluster.Namespace(t)
	take(t, namespace,
		"{apiVersion: v1, kind: Service, metadata: {name: j}, spec: {clusterIP: None}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: j-ssh}}",
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: j}, spec: {podSelector: {}}}")
	cluster.CreateVolcanoJob(t, namespace, "j", "{plugins: {svc: [], ssh: []}, tasks: [{name: a, replicas: 1, @∞}]}", nil)
	waitAsked(t, namespace, "get services", "get secrets", "get networkpolicies.networking.k8s.io")
}

// kubeflowJobs of all kinds end, and are deleted when they have.
func kubeflowJobs(t *testing.T) {
	for kind, spec := range map[testbed.TrainingKind]string{
		testbed.TFJob: "tfReplicaSpecs: {Worker: {replicas: 1, @1}}", testbed.PyTorchJob: "pytorchReplicaSpecs: {Master: {replicas: 1, @1}}",
		testbed.XGBoostJob: "xgbReplicaSpecs: {Master: {replicas: 1, @1}}", testbed.PaddleJob: "paddleReplicaSpecs: {Worker: {replicas: 1, @1}}",
		testbed.JAXJob: "jaxReplicaSpecs: {Worker: {replicas: 1, @1}}", testbed.MPIJob: "mpiReplicaSpecs: {Launcher: {replicas: 1, @1}, Worker: {replicas: 1, @∞}}",
	} {
		cluster.GivenTrainingJob(t, kind, "{runPolicy: {schedulingPolicy: {}, ttlSecondsAfterFinished: 0, cleanPodPolicy: All}, "+spec+"}").IsGone()
	}
}

// kubeflowJobsOfAllSorts are scaled by an autoscaler, which is changed; suspended; ended by a
// deadline; and told of other hosts.
func kubeflowJobsOfAllSorts(t *testing.T) {
	const elastic = "pytorchReplicaSpecs: {Worker: {@?}}, elasticPolicy: {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}"
	scaled := cluster.GivenTrainingJob(t, testbed.PyTorchJob, "{"+elastic+"}").IsScaled(true)
	scaled.Change("{spec: {elasticPolicy: {maxReplicas: 4}}}")
	waitAsked(t, scaled.Namespace, "patch horizontalpodautoscalers.autoscaling")
	for range 2 { // The second time it is told by a change of the event of the first one.
		scaled.Change("{spec: {runPolicy: {suspend: true}}}").IsScaled(false).HasPairs()
		scaled.Change("{spec: {runPolicy: {suspend: false}}}").IsScaled(true).HasPairs("j-worker-0")
	}
	waitAsked(t, scaled.Namespace, "patch events")

	limited := cluster.GivenTrainingJob(t, testbed.TFJob, "{runPolicy: {activeDeadlineSeconds: 5, cleanPodPolicy: None}, tfReplicaSpecs: {Worker: {@∞}}}")
	limited.InPhase(kubeflowv1.JobFailed)
	waitAsked(t, limited.Namespace, "patch pods")

	mpi := cluster.GivenTrainingJob(t, testbed.MPIJob, "{mpiReplicaSpecs: {Launcher: {@?}, Worker: {@?}}}")
	mpi.HasPods("j-launcher", "j-worker-0").Run("j-worker-0")
	mpi.Change("{spec: {mpiReplicaSpecs: {Worker: {replicas: 2}}}}")
	waitAsked(t, mpi.Namespace, "patch configmaps")
}

// namesOfATrainingJob are taken when it begins.
func namesOfATrainingJob(t *testing.T) {
	namespace := cluster.Namespace(t)
	take(t, namespace,
		"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: j}, spec: {maxReplicas: 1, scaleTargetRef: {kind: Deployment, apiVersion: apps/v1, name: d}}}",
		"{apiVersion: scheduling.lockstep.dev/v1alpha1, kind: PodGroup, metadata: {name: j-pytorchjob-1}, spec: {minMember: 1}}")
	cluster.CreateTrainingJob(t, namespace, testbed.PyTorchJob, "j",
		"{runPolicy: {schedulingPolicy: {}}, pytorchReplicaSpecs: {Worker: {replicas: 1, @∞}}, elasticPolicy: {maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}", nil)
	waitAsked(t, namespace, "get podgroups.scheduling.lockstep.dev", "get horizontalpodautoscalers.autoscaling")
}

// groupsOfJobs has the controller make a PodGroup for a Job.
func groupsOfJobs(t *testing.T) {
	namespace := cluster.Namespace(t)
	if _, err := cluster.Kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"scheduling.lockstep.dev/gang-by-owner": "true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	take(t, namespace, "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: {spec: {schedulerName: lockstep-scheduler, "+
		"restartPolicy: Never, containers: [{name: c, image: registry.example/train}]}}}}")
	testbed.EventuallyWithin(t, soon, "a PodGroup for the Job", func(ctx context.Context) (bool, string, error) {
		groups, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(groups.Items) == 1, "", err
	})
}

// groups of each kind wait, are told so, and are placed.
func groups(t *testing.T) {
	namespace := cluster.Namespace(t)
	for _, group := range []struct{ resource, manifest string }{
		{"podgroups.scheduling.x-k8s.io", "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 2}}"},
		{"podgroups.scheduling.volcano.sh", "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 2, queue: default}}"},
		{"podgroups.scheduling.k8s.io", "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}"},
	} {
		take(t, namespace, group.manifest)
	}
	name := "g"
	for kind, names := range map[string]func(*corev1.Pod){
		"plugins": func(pod *corev1.Pod) { pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"} },
		"volcano": func(pod *corev1.Pod) { pod.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"} },
		"native":  func(pod *corev1.Pod) { pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name} },
	} {
		for i := range 2 {
			cluster.CreatePod(t, namespace, testbed.MakePod(fmt.Sprintf("%s-%d", kind, i), names))
		}
		for i := range 2 {
			testbed.EventuallyWithin(t, soon, "the group to be placed", placed(namespace, fmt.Sprintf("%s-%d", kind, i)))
		}
	}
}

// jobsAcrossARestart are there when the controller that knows them ends, and another one begins. It
// goes by no status before it has looked whether that is the stored one.
func jobsAcrossARestart(t *testing.T) func(t *testing.T) {
	namespace := cluster.Namespace(t)
	for kind, spec := range map[testbed.TrainingKind]string{
		testbed.TFJob: "tfReplicaSpecs: {Worker: {replicas: 1, @∞}}", testbed.PyTorchJob: "pytorchReplicaSpecs: {Worker: {replicas: 1, @∞}}",
		testbed.XGBoostJob: "xgbReplicaSpecs: {Master: {replicas: 1, @∞}}", testbed.PaddleJob: "paddleReplicaSpecs: {Worker: {replicas: 1, @∞}}",
		testbed.JAXJob: "jaxReplicaSpecs: {Worker: {replicas: 1, @∞}}", testbed.MPIJob: "mpiReplicaSpecs: {Launcher: {replicas: 1, @∞}, Worker: {replicas: 1, @∞}}",
	} {
		cluster.CreateTrainingJob(t, namespace, kind, fmt.Sprintf("j-%d", len(spec)), "{"+spec+"}", nil).Has("Created Running")
	}
	cluster.CreateVolcanoJob(t, namespace, "v", "{plugins: {svc: []}, tasks: [{name: a, replicas: 1, @∞}]}", nil).Passes(batchv1alpha1.JobRunning)
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("f").Role("worker", 1, jobs.RunForever().Scheduler(testbed.GangScheduler)).Obj())
	cluster.WaitFrameworkState(t, namespace, "f", frameworkv1.FrameworkAttemptRunning)
	restartController(t)
	return func(t *testing.T) {
		makeLeftover(t, namespace)
		waitAsked(t, namespace, "get frameworks.frameworkcontroller.microsoft.com")
		// What is made again without a change of a status. A write would show as well what is stored.
		if out, err := cluster.Kubectl(t.Context(), "delete", "services,configmaps", "--all", "--wait=false", "-n", namespace); err != nil {
			t.Fatal(err, out)
		}
		waitAsked(t, namespace, "get jobs.batch.volcano.sh", "get tfjobs.kubeflow.org", "get pytorchjobs.kubeflow.org", "get xgboostjobs.kubeflow.org",
			"get paddlejobs.kubeflow.org", "get jaxjobs.kubeflow.org", "get mpijobs.kubeflow.org")
	}
}

// makeLeftover makes a Pod that says that it is of the Framework f, which has no such task.
func makeLeftover(t *testing.T, namespace string) {
	t.Helper()
	pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), "f-worker-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := pod.ObjectMeta
	cluster.CreatePod(t, namespace, testbed.MakePod("f-worker-9", func(pod *corev1.Pod) {
		pod.Labels, pod.Annotations, pod.OwnerReferences = of.Labels, of.Annotations, of.OwnerReferences
		pod.Annotations["FC_TASK_INDEX"] = "9"
	}))
}

// preemption has a Pod give way to one of a higher priority.
func preemption(t *testing.T) {
	namespace := cluster.Namespace(t)
	class := "high-" + namespace
	cluster.CreateClass(t, class, 1000)
	room := cluster.Room(t, 1)
	cluster.CreatePod(t, namespace, testbed.MakePod("low", room.Confine))
	testbed.EventuallyWithin(t, soon, "the Pod to be placed", placed(namespace, "low"))
	cluster.CreateGroup(t, namespace, "high", 1)
	cluster.CreatePod(t, namespace, testbed.MakePod("high", room.Confine, testbed.InGroup("high"), func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class }))
	testbed.EventuallyWithin(t, soon, "the other one to take its place", placed(namespace, "high"))
}

// podExists says whether there is a Pod.
func podExists(namespace, name string) func(ctx context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		_, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil, fmt.Sprint(err), nil
	}
}

// placed says whether a Pod has a node.
func placed(namespace, name string) func(ctx context.Context) (bool, string, error) {
	return func(ctx context.Context) (bool, string, error) {
		pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return pod.Spec.NodeName != "", fmt.Sprint(pod.Status.Conditions), nil
	}
}

// metricsOfBoth has somebody ask for metrics who has no right to, and then has the role for it.
func metricsOfBoth(t *testing.T) {
	namespace := cluster.Namespace(t)
	token := cluster.Token(t, namespace, "default")
	urls := []string{"https://" + schedulerAddress + "/metrics", "https://" + controllerAddress + "/metrics"}
	for _, url := range urls {
		if status, said := testbed.MustAsk(t, url, ""); status == http.StatusOK {
			t.Errorf("%s without a token is answered with %d: %.200s", url, status, said)
		}
		if status, said := testbed.MustAsk(t, url, token); status != http.StatusForbidden {
			t.Errorf("%s without the right is answered with %d, want %d: %.200s", url, status, http.StatusForbidden, said)
		}
	}
	token = cluster.ReaderOfMetrics(t, namespace)
	for _, url := range urls {
		if status, said := testbed.MustAsk(t, url, token); status != http.StatusOK || !strings.Contains(said, "lockstep_") {
			t.Errorf("%s is answered to its reader with %d, want %d and metrics: %.200s", url, status, http.StatusOK, said)
		}
	}
	pprof := "https://" + controllerAddress + "/debug/pprof/heap"
	if status, said := testbed.MustAsk(t, pprof, token); status != http.StatusForbidden {
		t.Errorf("%s is answered with %d, want %d: %.200s", pprof, status, http.StatusForbidden, said)
	}
}
