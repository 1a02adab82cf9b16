// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

const (
	chartFolder = root + "/chart"
	namespace   = "lockstep-system"
	keep        = "helm.sh/resource-policy"

	allIntegrations = "integrations: {volcano: true, kubeflow: true, kueue: true, secrets: true}\n" +
		"controller: {config: {volcanoJobs: {schedulerNames: [lockstep-scheduler]}, kubeflowJobs: {pytorchInitImage: 'lockstep.dev/frameworkbarrier:dev'}}}\n"
	allPodGroupAPIs = "podGroupAPIs: {native: true, scheduler-plugins: true, volcano: true}\n"
)

// template renders a chart, a folder or an archive, as `helm template` does.
func template(chart, namespace, values string) ([]string, error) {
	return templateFor(chartutil.DefaultCapabilities, chart, namespace, values)
}

// templateFor renders it for a cluster that can do something.
func templateFor(cluster *chartutil.Capabilities, chart, namespace, values string) ([]string, error) {
	loaded, err := loader.Load(chart)
	if err != nil {
		return nil, err
	}
	read, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "lockstep", Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, read, release, cluster)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, file := range files {
		for document := range strings.SplitSeq("\n"+file, "\n---\n") {
			if strings.TrimSpace(document) != "" {
				documents = append(documents, document+"\n")
			}
		}
	}
	return documents, nil
}

// released are the objects of a release with these values.
func released(t *testing.T, values string) []runtime.Object {
	t.Helper()
	documents, err := template(chartFolder, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, values, documents)
}

// comparable are objects by kind, namespace and name, without what Helm and Kustomize do in
// different ways: Pods are replaced for a new configuration by the name of the ConfigMap or by an
// annotation; CRDs are kept by an annotation; the namespace of a release is made before it; the overlays bind in a
// namespace also roles that are not there, which gives nothing.
func comparable(t *testing.T, objects []runtime.Object) map[string]map[string]any {
	t.Helper()
	byName := map[string]map[string]any{}
	roles := names(of[*rbacv1.ClusterRole](objects))
	for _, object := range objects {
		object = object.DeepCopyObject()
		switch o := object.(type) {
		case *corev1.Namespace:
			continue
		case *corev1.ConfigMap:
			o.Name = withoutHash(o.Name)
			var config any
			if err := yaml.Unmarshal([]byte(o.Data["config.yaml"]), &config); err != nil {
				t.Fatal(err)
			}
			o.Data["config.yaml"] = fmt.Sprint(config)
		case *rbacv1.RoleBinding:
			if o.RoleRef.Kind == "ClusterRole" && !slices.Contains(roles, o.RoleRef.Name) {
				continue
			}
		case *appsv1.Deployment:
			delete(o.Spec.Template.Annotations, "checksum/config")
			if len(o.Spec.Template.Annotations) == 0 {
				o.Spec.Template.Annotations = nil
			}
			for _, volume := range o.Spec.Template.Spec.Volumes {
				if volume.ConfigMap != nil {
					volume.ConfigMap.Name = withoutHash(volume.ConfigMap.Name)
				}
			}
		case *apiextensionsv1.CustomResourceDefinition:
			delete(o.Annotations, keep)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		u := unstructured.Unstructured{Object: fields}
		key := strings.Join([]string{u.GetKind(), u.GetNamespace(), u.GetName()}, " ")
		if byName[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		byName[key] = fields
	}
	return byName
}

func withoutHash(name string) string {
	before, _, _ := strings.Cut(name, "-config-")
	return strings.TrimSuffix(before, "-config") + "-config"
}

func TestTheChartInstallsWhatTheOverlaysDo(t *testing.T) {
	valuesOf := map[string]string{
		"secondary-scheduler": "",
		"integrations":        allIntegrations + allPodGroupAPIs,
		"several-namespaces":  "namespaces: [team-a, team-b]\n",
		"scheduler-alone":     "controller: {podGroupsOnly: true}\n" + allPodGroupAPIs,
	}
	for _, folder := range overlays(t) {
		overlay := filepath.Base(folder)
		t.Run(overlay, func(t *testing.T) {
			values, known := valuesOf[overlay]
			if !known {
				t.Fatal("no values of the chart are for this overlay")
			}
			want, got := comparable(t, objectsOf(t, folder)), comparable(t, released(t, values))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects of the overlay (-) and of the chart (+):\n%s", diff)
			}
		})
	}
}

// TestTheNamespaceOfLockstepCanBeServed, too: each object that is needed for that has a name of its own.
func TestTheNamespaceOfLockstepCanBeServed(t *testing.T) {
	overlay := severalNamespaces(t, "team-a", namespace)
	if diff := cmp.Diff(comparable(t, overlay), comparable(t, released(t, "namespaces: [team-a, lockstep-system]\n"))); diff != "" {
		t.Errorf("objects of the kustomization (-) and of the chart (+):\n%s", diff)
	}
}

// TestThePackedChartIsWhole: the archive needs no checkout, and has the same bytes each time.
func TestThePackedChartIsWhole(t *testing.T) {
	packed, err := packChart(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := packChart(chartFolder); err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the second archive has other bytes than the first one (%v)", err)
	}
	archive := filepath.Join(t.TempDir(), "lockstep.tgz")
	if err := os.WriteFile(archive, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	values := allIntegrations + allPodGroupAPIs
	documents, err := template(archive, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(comparable(t, released(t, values)), comparable(t, decoded(t, archive, documents))); diff != "" {
		t.Errorf("objects of the folder (-) and of the archive (+):\n%s", diff)
	}
}

func TestTheChartInstallsIntoAnyNamespace(t *testing.T) {
	documents, err := template(chartFolder, "gangs", allIntegrations+allPodGroupAPIs)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		if strings.Contains(document, namespace) {
			t.Errorf("it names %s:\n%.400s", namespace, document)
		}
	}
	leasesAreAllowed(t, "the chart in gangs", decoded(t, "the chart", documents))
}

// TestTheChartLeavesOutWhatAnOlderClusterLacks: FlowSchemas of v1 come with Kubernetes 1.29.
func TestTheChartLeavesOutWhatAnOlderClusterLacks(t *testing.T) {
	older := chartutil.DefaultCapabilities.Copy()
	older.APIVersions = slices.DeleteFunc(slices.Clone(older.APIVersions), func(version string) bool {
		return strings.HasPrefix(version, "flowcontrol.apiserver.k8s.io/v1")
	})
	for capabilities, want := range map[*chartutil.Capabilities]bool{chartutil.DefaultCapabilities: true, older: false} {
		documents, err := templateFor(capabilities, chartFolder, namespace, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(documents, ""), "kind: FlowSchema"); got != want {
			t.Errorf("there are FlowSchemas: %t, want %t", got, want)
		}
	}
}

// allInSomeNamespaces is a kustomization in which two namespaces have all integrations and PodGroup APIs.
const allInSomeNamespaces = `
resources:
- ../lockstep/manifests/overlays/several-namespaces
- ../lockstep/manifests/volcano
- ../lockstep/manifests/kubeflow
- ../lockstep/manifests/kueue
- ../lockstep/manifests/secrets
- ../lockstep/manifests/podgroup-apis
components: [../lockstep/manifests/namespaced]
`

// TestIntegrationsAreGrantedInTheirNamespaces: in each of them all that a program may do there, whichever way it is installed.
func TestIntegrationsAreGrantedInTheirNamespaces(t *testing.T) {
	bindings := func(objects []runtime.Object) []string {
		var found []string
		for key := range comparable(t, objects) {
			if strings.HasPrefix(key, "RoleBinding ") {
				found = append(found, key)
			}
		}
		slices.Sort(found)
		return found
	}
	want := bindings(released(t, "namespaces: [team-a, team-b]\n"+allIntegrations+allPodGroupAPIs))
	if got := count(want, func(key string) bool { return strings.HasPrefix(key, "RoleBinding team-") }); got != 2*10 {
		t.Errorf("%d roles are bound in two namespaces, want 3 of the programs, 3 of integrations, 1 to Secrets and 3 of PodGroup APIs in each", got)
	}
	if diff := cmp.Diff(want, bindings(own(t, allInSomeNamespaces, nil))); diff != "" {
		t.Errorf("of the chart (-) and of the kustomization (+):\n%s", diff)
	}
}

// TestInSomeNamespacesNobodyWritesElsewhere: whatever is switched on, what is bound in the whole
// cluster are reads, and what no namespace has.
func TestInSomeNamespacesNobodyWritesElsewhere(t *testing.T) {
	rendered := map[string][]runtime.Object{
		"the overlay": objectsOf(t, root+"/overlays/several-namespaces"),
		"the overlay with all that can be switched on": own(t, allInSomeNamespaces, nil),
		"the chart": released(t, "namespaces: [team-a, team-b]\n"+allIntegrations+allPodGroupAPIs),
	}
	for name, objects := range rendered {
		t.Run(name, func(t *testing.T) {
			rules := map[string][]rbacv1.PolicyRule{}
			for _, role := range of[*rbacv1.ClusterRole](objects) {
				rules[role.Name] = role.Rules
			}
			bound := of[*rbacv1.ClusterRoleBinding](objects)
			if diff := cmp.Diff([]string{"lockstep-controller-cluster", "lockstep-scheduler-cluster"}, names(bound)); diff != "" {
				t.Errorf("what is bound in the cluster (-want,+got):\n%s", diff)
			}
			var written []string
			for _, binding := range bound {
				for _, rule := range rules[binding.RoleRef.Name] {
					if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }) {
						written = append(written, rule.Resources...)
					}
				}
			}
			slices.Sort(written)
			if diff := cmp.Diff([]string{"persistentvolumes", "subjectaccessreviews", "tokenreviews"}, slices.Compact(written)); diff != "" {
				t.Errorf("what may be written in the cluster (-want,+got):\n%s", diff)
			}
			for _, binding := range of[*rbacv1.RoleBinding](objects) {
				if slices.Contains([]string{namespace, "kube-system", "team-a", "team-b"}, binding.Namespace) {
					continue
				}
				t.Errorf("%s/%s binds in a namespace that nobody named", binding.Namespace, binding.Name)
			}
		})
	}
}

func TestUninstallingTheChartDeletesNoJobs(t *testing.T) {
	crds := of[*apiextensionsv1.CustomResourceDefinition](released(t, ""))
	if len(crds) != 2 {
		t.Errorf("CRDs: %v, want two", names(crds))
	}
	for _, crd := range crds {
		if got := crd.Annotations[keep]; got != "keep" {
			t.Errorf("%s has the policy %q, want keep", crd.Name, got)
		}
	}
	if crds := of[*apiextensionsv1.CustomResourceDefinition](released(t, "crds: false")); len(crds) != 0 {
		t.Errorf("CRDs that are switched off: %v", names(crds))
	}
}

func TestValuesOfTheChart(t *testing.T) {
	objects := released(t, `
controller:
  image: registry.example.com/controller:v1
  replicas: 0
  resources: {limits: {memory: 8Gi}}
  config: {volcanoJobs: {schedulerNames: [volcano]}, leaderElection: {enabled: false}}
scheduler:
  image: registry.example.com/scheduler@sha256:1234
  replicas: 3
  resources: {requests: {cpu: 2}}
  config: {clientConnection: {qps: 50}, leaderElection: {leaderElect: false}}
  alsoServe: [volcano, scheduler-plugins-scheduler]
integrations: {volcano: true}
apiServerPorts: [16443]
imagePullSecrets: [registry, mirror]
`)
	got := map[string]string{}
	for _, d := range of[*appsv1.Deployment](objects) {
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		got[d.Name] = fmt.Sprintf("%s ×%d, cpu %s, memory %s of %s, %v", c.Image, *d.Spec.Replicas, c.Resources.Requests.Cpu(), c.Resources.Requests.Memory(), c.Resources.Limits.Memory(), pod.ImagePullSecrets)
		for _, env := range c.Env {
			if env.Name == "ALSO_SERVE" {
				got["also serve"] = env.Value
			}
		}
	}
	for _, p := range of[*networkingv1.NetworkPolicy](objects) {
		for _, rule := range p.Spec.Egress {
			got["ports of "+p.Name] = fmt.Sprint(len(rule.Ports), " ", rule.Ports[0].Port)
		}
	}
	for _, config := range of[*corev1.ConfigMap](objects) {
		got[config.Name] = config.Data["config.yaml"]
	}
	if diff := cmp.Diff(map[string]string{
		"lockstep-controller":          "registry.example.com/controller:v1 ×0, cpu 100m, memory 128Mi of 8Gi, [{registry} {mirror}]",
		"lockstep-scheduler":           "registry.example.com/scheduler@sha256:1234 ×3, cpu 2, memory 256Mi of 4Gi, [{registry} {mirror}]",
		"also serve":                   "volcano,scheduler-plugins-scheduler",
		"ports of lockstep-controller": "1 16443",
		"ports of lockstep-scheduler":  "1 16443",
		"lockstep-controller-config": `apiVersion: config.lockstep.dev/v1alpha1
kind: ControllerConfiguration
leaderElection:
  enabled: false
volcanoJobs:
  enabled: true
  schedulerNames:
  - volcano
`,
		"lockstep-scheduler-config": `apiVersion: kubescheduler.config.k8s.io/v1
clientConnection:
  burst: 2000
  qps: 50
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
  resourceName: lockstep-scheduler
  resourceNamespace: lockstep-system
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: Coscheduling
  schedulerName: lockstep-scheduler
`,
	}, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	for _, config := range of[*corev1.ConfigMap](objects) {
		if config.Name != "lockstep-controller-config" {
			continue
		}
		if _, err := configv1alpha1.Decode([]byte(config.Data["config.yaml"])); err != nil {
			t.Errorf("%s: %v", config.Name, err)
		}
	}
}

// TestAReleaseReplacesThePodsWhoseConfigurationChanges, and no others.
func TestAReleaseReplacesThePodsWhoseConfigurationChanges(t *testing.T) {
	templates := func(values string) map[string]corev1.PodTemplateSpec {
		byName := map[string]corev1.PodTemplateSpec{}
		for _, d := range of[*appsv1.Deployment](released(t, values)) {
			byName[d.Name] = d.Spec.Template
		}
		return byName
	}
	plain := templates("")
	for values, want := range map[string][]string{
		"integrations: {kueue: true}":                              {"lockstep-controller"},
		"scheduler: {config: {clientConnection: {qps: 50}}}":       {"lockstep-scheduler"},
		"podGroupAPIs: {volcano: true}\napiServerPorts: [16443]\n": nil,
	} {
		var replaced []string
		for name, template := range templates(values) {
			if !cmp.Equal(plain[name], template) {
				replaced = append(replaced, name)
			}
		}
		if !slices.Equal(replaced, want) {
			t.Errorf("%s: the Pods of %v are replaced, want those of %v", values, replaced, want)
		}
	}
}

// schedulerNamesRequired is what lockstep-controller says when Volcano Jobs are on and their schedulers are not named.
func schedulerNamesRequired() string {
	on := true
	config := &configv1alpha1.ControllerConfiguration{VolcanoJobs: configv1alpha1.VolcanoJobs{Enabled: &on}}
	return configv1alpha1.Validate(config).ToAggregate().Error()
}

func TestWrongValuesAreRefusedByName(t *testing.T) {
	for values, want := range map[string]string{
		"controler: {}":                                                  "'controler'",
		"controller: {replica: 1}":                                       "'replica'",
		"controller: {replicas: two}":                                    "/controller/replicas",
		"controller: {replicas: -1}":                                     "/controller/replicas",
		"controller: {image: a b}":                                       "/controller/image",
		"controller: {image: {tag: v1}}":                                 "/controller/image",
		"controller: {config: [leaderElection]}":                         "/controller/config",
		"controller: {config: {kueue: {enabled: true}}}":                 "controller.config.kueue.enabled: set integrations.kueue instead",
		"scheduler: {resources: {limits: {memory: lots}}}":               "/scheduler/resources/limits/memory",
		"scheduler: {resources: {claims: []}}":                           "'claims'",
		"scheduler: {alsoServe: volcano}":                                "/scheduler/alsoServe",
		"scheduler: {alsoServe: ['a,b']}":                                "/scheduler/alsoServe/0",
		"integrations: {volcano: 'true'}":                                "/integrations/volcano",
		"integrations: {ray: true}":                                      "'ray'",
		"integrations: {volcano: true}":                                  "controller.config." + schedulerNamesRequired(),
		"integrations: {kueue: true}\ncontroller: {enabled: false}":      "integrations.kueue: the controller runs these jobs",
		"integrations: {kueue: true}\ncontroller: {podGroupsOnly: true}": "integrations.kueue: the controller runs these jobs",
		"podGroupAPIs: {schedulerPlugins: true}":                         "'schedulerPlugins'",
		"apiServerPorts: [70000]":                                        "/apiServerPorts/0",
		"imagePullSecrets: [{name: a}]":                                  "/imagePullSecrets/0",
		"crds: keep":                                                     "/crds",
		"frontEnds: {volcano: true}":                                     "frontEnds: the name of this value is integrations now",
		"dialects: {native: true}":                                       "dialects: the name of this value is podGroupAPIs now",
	} {
		if _, err := template(chartFolder, namespace, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", values, err, want)
		}
	}
}
