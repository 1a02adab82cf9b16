// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

const root = "../../manifests"

// overlays are all folders of manifests/overlays.
func overlays(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(root + "/overlays/*")
	if err != nil || len(found) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	return found
}

// objectsOf are the objects of a kustomization. A field that the type of an object does not have,
// or has twice, fails the test.
func objectsOf(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	rendered, err := render(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(rendered) == 0 { // a component, which has nothing of its own
		return nil
	}
	return decoded(t, folder, strings.Split(string(rendered), "\n---\n"))
}

func decoded(t *testing.T, where string, documents []string) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, document := range documents {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", where, err, document[:min(len(document), 400)])
		}
		objects = append(objects, object)
	}
	return objects
}

// of are the objects of one type.
func of[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

func names[T metav1.Object](objects []T) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return names
}

func TestEveryFolderOfTheManifestsRenders(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Name() == "kustomization.yaml" {
			folder := filepath.Dir(path)
			t.Run(strings.TrimPrefix(folder, root), func(t *testing.T) { objectsOf(t, folder) })
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOverlaysHaveWhatTheyPromise(t *testing.T) {
	both := []string{"lockstep-controller", "lockstep-scheduler"}
	kinds := []string{"frameworks.frameworkcontroller.microsoft.com", "podgroups.scheduling.lockstep.dev"}
	rights := []string{"lockstep-scheduler", "lockstep-scheduler-native", "lockstep-scheduler-scheduler-plugins", "lockstep-scheduler-volcano"}
	programs := []string{"lockstep-controller", "lockstep-controller-podgroups", "lockstep-scheduler"}
	users := []string{"lockstep-edit", "lockstep-metrics-reader", "lockstep-view"}
	for folder, want := range map[string]struct{ deployments, crds, roles []string }{
		"":                              {both, kinds, slices.Concat(programs, users)},
		"/overlays/secondary-scheduler": {both, kinds, slices.Concat(programs, users)},
		"/overlays/several-namespaces":  {both, kinds, slices.Concat(programs, users, []string{"lockstep-controller-cluster", "lockstep-scheduler-cluster"})},
		"/overlays/scheduler-alone":     {both, kinds[1:], slices.Concat(programs[1:2], rights, users)},
		"/overlays/integrations": {both, kinds, slices.Concat(users, rights, programs[:2], []string{
			"lockstep-controller-kubeflow-jobs", "lockstep-controller-kueue", "lockstep-controller-secrets", "lockstep-controller-volcano-jobs",
			"lockstep-kubeflow-jobs-edit", "lockstep-kubeflow-jobs-view", "lockstep-volcano-jobs-edit", "lockstep-volcano-jobs-view"})},
	} {
		t.Run(folder, func(t *testing.T) {
			objects := objectsOf(t, root+folder)
			if diff := cmp.Diff(want.deployments, names(of[*appsv1.Deployment](objects))); diff != "" {
				t.Errorf("Deployments (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(want.crds, names(of[*apiextensionsv1.CustomResourceDefinition](objects))); diff != "" {
				t.Errorf("CustomResourceDefinitions (-want,+got):\n%s", diff)
			}
			slices.Sort(want.roles)
			if diff := cmp.Diff(want.roles, names(of[*rbacv1.ClusterRole](objects))); diff != "" {
				t.Errorf("ClusterRoles (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestPodsOfLockstepWithstand holds what the Pods of each overlay need to run for long: none of it
// shows when it is missing until a node is drained, or is short of memory.
func TestPodsOfLockstepWithstand(t *testing.T) {
	for _, folder := range overlays(t) {
		objects := objectsOf(t, folder)
		budgets := of[*policyv1.PodDisruptionBudget](objects)
		for _, d := range of[*appsv1.Deployment](objects) {
			t.Run(filepath.Base(folder)+"/"+d.Name, func(t *testing.T) {
				pod := d.Spec.Template.Spec
				if pod.PriorityClassName != "system-cluster-critical" {
					t.Errorf("its class of priority is %q", pod.PriorityClassName)
				}
				if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
					t.Errorf("it has the replicas %v, so nobody stands by", d.Spec.Replicas)
				}
				// One at a time: of two replicas one stays, and a drain goes on.
				if got := count(budgets, func(b *policyv1.PodDisruptionBudget) bool {
					return selects(t, b.Spec.Selector, d.Spec.Template.Labels) && b.Spec.MinAvailable == nil &&
						b.Spec.MaxUnavailable != nil && *b.Spec.MaxUnavailable == intstr.FromInt32(1)
				}); got != 1 {
					t.Errorf("%d PodDisruptionBudgets let one of its Pods go at a time, want one", got)
				}
				for _, topology := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
					if got := count(pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
						return c.TopologyKey == topology && selects(t, c.LabelSelector, d.Spec.Template.Labels)
					}); got != 1 {
						t.Errorf("%d constraints spread its Pods over %s, want one", got, topology)
					}
				}
				taint := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
				if !slices.ContainsFunc(pod.Tolerations, func(toleration corev1.Toleration) bool {
					return toleration.Key == taint.Key && toleration.Effect == taint.Effect && toleration.Operator == corev1.TolerationOpExists
				}) {
					t.Error("it does not tolerate the control plane")
				}
				for _, c := range pod.Containers {
					limited := slices.ContainsFunc(c.Env, func(env corev1.EnvVar) bool {
						return env.Name == "GOMEMLIMIT" && env.ValueFrom != nil && env.ValueFrom.ResourceFieldRef != nil &&
							env.ValueFrom.ResourceFieldRef.Resource == "limits.memory"
					})
					if !limited || c.Resources.Limits.Memory().IsZero() {
						t.Errorf("container %s does not know its limit of memory", c.Name)
					}
				}
			})
		}
	}
}

// TestPodsOfLockstepAreRestricted evaluates the Pods as Pod Security admission does.
func TestPodsOfLockstepAreRestricted(t *testing.T) {
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(overlays(t), root+"/dashboard") {
		objects := objectsOf(t, folder)
		for _, ns := range of[*corev1.Namespace](objects) {
			if got := ns.Labels[psaapi.EnforceLevelLabel]; got != string(psaapi.LevelRestricted) {
				t.Errorf("%s: the namespace enforces %q, want restricted", folder, got)
			}
		}
		for _, d := range of[*appsv1.Deployment](objects) {
			level := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
			for _, result := range evaluator.EvaluatePod(level, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", folder, d.Name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
		}
	}
}

// TestNobodyReachesLockstepUnasked: nothing is allowed but what a policy names, and each Deployment
// may call the API server.
func TestNobodyReachesLockstepUnasked(t *testing.T) {
	// The web page comes into the namespace of an overlay, with its policy.
	page := objectsOf(t, root+"/dashboard")
	for _, folder := range overlays(t) {
		objects := append(objectsOf(t, folder), page...)
		policies := of[*networkingv1.NetworkPolicy](objects)
		if got := count(policies, func(p *networkingv1.NetworkPolicy) bool {
			return reflect.DeepEqual(p.Spec.PodSelector, metav1.LabelSelector{}) && len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Egress) == 0 && len(p.Spec.Ingress) == 0
		}); got != 1 {
			t.Errorf("%s: %d policies deny everything by default, want one", folder, got)
		}
		for _, d := range of[*appsv1.Deployment](objects) {
			var out, in []string
			for _, p := range policies {
				if !selects(t, &p.Spec.PodSelector, d.Spec.Template.Labels) {
					continue
				}
				for _, rule := range p.Spec.Egress {
					for _, port := range rule.Ports {
						out = append(out, port.Port.String())
					}
				}
				for _, rule := range p.Spec.Ingress {
					if len(rule.From) == 0 {
						t.Errorf("%s: %s lets everybody in", folder, p.Name)
					}
					for _, port := range rule.Ports {
						in = append(in, port.Port.String())
					}
				}
			}
			if diff := cmp.Diff([]string{"443", "6443"}, out); diff != "" {
				t.Errorf("%s: ports that %s may call (-want,+got):\n%s", folder, d.Name, diff)
			}
			for _, port := range in {
				if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return fmt.Sprint(p.ContainerPort) == port || p.Name == port }) {
					t.Errorf("%s: %s may be called at port %s, where it does not listen", folder, d.Name, port)
				}
			}
		}
	}
}

// TestPodsAreReplacedWhenTheirConfigurationChanges: the name of the ConfigMap that a Deployment
// mounts is one of those that are rendered, and has a hash of its content.
func TestPodsAreReplacedWhenTheirConfigurationChanges(t *testing.T) {
	mounted := map[string]string{}
	for _, folder := range overlays(t) {
		objects := objectsOf(t, folder)
		configs := names(of[*corev1.ConfigMap](objects))
		for _, d := range of[*appsv1.Deployment](objects) {
			for _, volume := range d.Spec.Template.Spec.Volumes {
				if volume.ConfigMap == nil {
					continue
				}
				name := volume.ConfigMap.Name
				if !slices.Contains(configs, name) || !strings.HasPrefix(name, d.Name+"-config-") {
					t.Errorf("%s: %s mounts the ConfigMap %s; rendered are %v", folder, d.Name, name, configs)
				}
				mounted[filepath.Base(folder)+"/"+d.Name] = name
			}
		}
	}
	if plain, other := mounted["secondary-scheduler/lockstep-controller"], mounted["integrations/lockstep-controller"]; plain == other {
		t.Errorf("two configurations have one name, %s", plain)
	}
}

// TestRolesNameTheLeases: replicas that may not read their Lease never lead, and nothing else of
// them looks wrong. FlowSchemas have it read and renewed while the API server is busy with other requests.
func TestRolesNameTheLeases(t *testing.T) {
	for _, folder := range overlays(t) {
		leasesAreAllowed(t, folder, objectsOf(t, folder))
	}
}

// leasesAreAllowed fails the test if a Pod of one of the programs may not hold the Lease that its configuration names,
// if it waits for it behind other requests, or if both replicas would act.
func leasesAreAllowed(t *testing.T, where string, objects []runtime.Object) {
	t.Helper()
	for _, object := range of[*corev1.ConfigMap](objects) {
		var elected bool
		var namespace, name string
		if config := controllerConfiguration(t, object); config != nil {
			elected, namespace, name = *config.LeaderElection.Enabled, *config.LeaderElection.Namespace, *config.LeaderElection.Name
		} else {
			config := schedulerConfiguration(t, []byte(object.Data["config.yaml"])).LeaderElection
			elected, namespace, name = config.LeaderElect, config.ResourceNamespace, config.ResourceName
		}
		if !elected {
			t.Errorf("%s: with %s both replicas act", where, object.Name)
		}
		i := slices.IndexFunc(of[*rbacv1.Role](objects), func(role *rbacv1.Role) bool {
			return role.Namespace == namespace && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Resources, "leases") && slices.Contains(rule.ResourceNames, name) && slices.Contains(rule.Verbs, "update")
			})
		})
		if i < 0 {
			t.Errorf("%s: %s names the Lease %s/%s, which no Role allows", where, object.Name, namespace, name)
			continue
		}
		leaseGoesFirst(t, where, of[*rbacv1.Role](objects)[i], objects)
	}
	if got, want := len(of[*flowcontrolv1.FlowSchema](objects)), len(of[*corev1.ConfigMap](objects)); got != want {
		t.Errorf("%s: there are %d FlowSchemas for the Leases of %d programs", where, got, want)
	}
}

// leaseGoesFirst fails the test if there is no FlowSchema for exactly the requests for Leases that a Role allows, by those who
// have it, or if Kubernetes' own for service accounts comes first.
func leaseGoesFirst(t *testing.T, where string, role *rbacv1.Role, objects []runtime.Object) {
	t.Helper()
	var subjects []flowcontrolv1.Subject
	for _, binding := range of[*rbacv1.RoleBinding](objects) {
		if binding.Namespace == role.Namespace && binding.RoleRef.Kind == "Role" && binding.RoleRef.Name == role.Name {
			for _, s := range binding.Subjects {
				subjects = append(subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKind(s.Kind),
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: s.Namespace, Name: s.Name}})
			}
		}
	}
	verbs := map[string]bool{}
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "leases") {
			for _, verb := range rule.Verbs {
				verbs[verb] = true
			}
		}
	}
	want := []flowcontrolv1.PolicyRulesWithSubjects{{Subjects: subjects, ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Namespaces: []string{role.Namespace},
		Verbs: slices.Sorted(maps.Keys(verbs)),
	}}}}
	const serviceAccountsOfKubeSystem = 900 // the least precedence of Kubernetes' own for service accounts, if they ask for any resource
	i := slices.IndexFunc(of[*flowcontrolv1.FlowSchema](objects), func(schema *flowcontrolv1.FlowSchema) bool {
		spec := schema.Spec.DeepCopy()
		for _, rule := range spec.Rules {
			for _, resources := range rule.ResourceRules {
				slices.Sort(resources.Verbs)
			}
		}
		return spec.PriorityLevelConfiguration.Name == "leader-election" && spec.MatchingPrecedence < serviceAccountsOfKubeSystem && cmp.Equal(want, spec.Rules)
	})
	if i < 0 {
		t.Errorf("%s: no FlowSchema is for the requests for Leases that the Role %s allows: %v", where, role.Name, want)
	}
}

// TestOlderClustersHaveAnInstallationWithoutFlowSchemas, as docs/install.md says.
func TestOlderClustersHaveAnInstallationWithoutFlowSchemas(t *testing.T) {
	objects := own(t, "resources: [../lockstep/manifests/overlays/secondary-scheduler]\n"+documented(t, "install.md", "target: {kind: FlowSchema}"), nil)
	if left := of[*flowcontrolv1.FlowSchema](objects); len(left) != 0 {
		t.Errorf("left are %v", names(left))
	}
	if want := len(objectsOf(t, root+"/overlays/secondary-scheduler")) - 2; len(objects) != want {
		t.Errorf("there are %d objects, want %d", len(objects), want)
	}
}

// controllerConfiguration is what lockstep-controller makes of its ConfigMap in a Pod beside it, and nil of another
// ConfigMap.
func controllerConfiguration(t *testing.T, object *corev1.ConfigMap) *configv1alpha1.ControllerConfiguration {
	t.Helper()
	if !strings.HasPrefix(object.Name, "lockstep-controller") {
		return nil
	}
	config, err := configv1alpha1.Decode([]byte(object.Data["config.yaml"]))
	if err != nil {
		t.Fatalf("%s: %v", object.Name, err)
	}
	configv1alpha1.SetDefaults(config)
	configv1alpha1.SetConnectionDefaults(config, func(string) string { return "" }, func(string) bool { return false })
	environment := map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
	configv1alpha1.SetElectionDefaults(config, func(name string) string { return environment[name] },
		func(string) ([]byte, error) { return []byte(object.Namespace), nil })
	return config
}

func TestConfigurationsOfTheControllerAreValid(t *testing.T) {
	for _, folder := range overlays(t) {
		for _, object := range of[*corev1.ConfigMap](objectsOf(t, folder)) {
			config := controllerConfiguration(t, object)
			if config == nil {
				continue
			}
			if err := configv1alpha1.Validate(config).ToAggregate(); err != nil {
				t.Errorf("%s: %v", folder, err)
			}
			if *config.VolcanoJobs.Enabled != (filepath.Base(folder) == "integrations") {
				t.Errorf("%s: Volcano Jobs are on: %v", folder, *config.VolcanoJobs.Enabled)
			}
		}
	}
}

// TestPrometheusReachesBothPrograms follows the way of Prometheus: from a ServiceMonitor to a Service, to the
// Pods of a Deployment and their port, with a token whose account may read metrics.
func TestPrometheusReachesBothPrograms(t *testing.T) {
	monitoring, lockstep := objectsOf(t, root+"/monitoring"), objectsOf(t, root)
	monitors, services := of[*monitoringv1.ServiceMonitor](monitoring), of[*corev1.Service](monitoring)
	deployments := of[*appsv1.Deployment](lockstep)
	if len(deployments) != 2 {
		t.Fatalf("%d Deployments, want both programs", len(deployments))
	}
	for _, d := range deployments {
		var found []string
		for _, m := range monitors {
			for _, s := range services {
				if m.Namespace != s.Namespace || s.Namespace != d.Namespace || !selects(t, &m.Spec.Selector, s.Labels) ||
					!selects(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}, d.Spec.Template.Labels) {
					continue
				}
				for _, endpoint := range m.Spec.Endpoints {
					for _, port := range s.Spec.Ports {
						for _, open := range d.Spec.Template.Spec.Containers[0].Ports {
							if port.Name == endpoint.Port && port.TargetPort.String() == open.Name && port.Port == open.ContainerPort {
								found = append(found, s.Labels[m.Spec.JobLabel]+" "+endpoint.Path)
							}
						}
					}
				}
			}
		}
		// The rules and the dashboard know a program by its job.
		if diff := cmp.Diff([]string{d.Name + " /metrics"}, found); diff != "" {
			t.Errorf("what is read of %s, by job (-want,+got):\n%s", d.Name, diff)
		}
	}

	accounts := of[*corev1.ServiceAccount](monitoring)
	secrets := of[*corev1.Secret](monitoring)
	bindings := of[*rbacv1.ClusterRoleBinding](monitoring)
	if len(accounts) != 1 || len(secrets) != 1 || len(bindings) != 1 {
		t.Fatalf("%d accounts, %d tokens, %d bindings, want one each", len(accounts), len(secrets), len(bindings))
	}
	if got := secrets[0].Annotations[corev1.ServiceAccountNameKey]; got != accounts[0].Name || secrets[0].Type != corev1.SecretTypeServiceAccountToken {
		t.Errorf("the token is of %q, of type %s", got, secrets[0].Type)
	}
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: accounts[0].Name, Namespace: accounts[0].Namespace}}
	if diff := cmp.Diff(want, bindings[0].Subjects); diff != "" {
		t.Errorf("who may read metrics (-want,+got):\n%s", diff)
	}
	if role := bindings[0].RoleRef.Name; !slices.Contains(names(of[*rbacv1.ClusterRole](lockstep)), role) || role != "lockstep-metrics-reader" {
		t.Errorf("the account has the role %s", role)
	}
	for _, m := range monitors {
		for _, endpoint := range m.Spec.Endpoints {
			if endpoint.Authorization == nil || endpoint.Authorization.Credentials == nil || endpoint.Authorization.Credentials.Name != secrets[0].Name ||
				endpoint.Authorization.Credentials.Key != corev1.ServiceAccountTokenKey {
				t.Errorf("%s does not use the token: %+v", m.Name, endpoint.Authorization)
			}
		}
	}
}

func count[T any](all []T, fits func(T) bool) int {
	n := 0
	for _, one := range all {
		if fits(one) {
			n++
		}
	}
	return n
}

// selects says whether a selector selects labels. One that selects all is none.
func selects(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(of))
}
