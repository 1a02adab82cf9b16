// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// team is a cluster in memory, seen from the namespace team, with some nodes of four CPUs.
func team(t *testing.T, nodes ...string) (*apiserver.Server, *cluster) {
	t.Helper()
	server := apiserver.New(t)
	reader, err := reading.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")}
		apiserver.Add(server, node)
	}
	return server, &cluster{namespace: "team", config: server.Config(), reader: reader}
}

// busy is a Pod of a namespace that takes a number of CPUs of a node, and has no priority.
func busy(namespace, name, node, cpu string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{NodeName: node, Priority: new(int32), Containers: []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

// manifest is a Framework whose two tasks take two CPUs each; gang and spec are more of its spec and of that of its Pods.
func manifest(gang, spec string) string {
	return fmt.Sprintf(`{apiVersion: frameworkcontroller.microsoft.com/v1, kind: Framework, metadata: {name: train}, spec: {%s taskRoles: [
{name: worker, taskNumber: 2, task: {pod: {spec: {%s containers: [{name: main, image: any, resources: {requests: {cpu: "2"}}}]}}}}]}}`, gang, spec)
}

// simulated is what simulate -f says of a manifest, and its exit code.
func simulated(t *testing.T, c *cluster, manifest string, change ...func(*simulateOptions)) (string, int) {
	t.Helper()
	var out bytes.Buffer
	o := &simulateOptions{session: &session{in: strings.NewReader(manifest), out: &out, errOut: &out}, file: "-"}
	for _, f := range change {
		f(o)
	}
	return ended(&out, o.on(t.Context(), c, nil))
}

// ended is what a verb has said in all, and its exit code.
func ended(out *bytes.Buffer, err error) (string, int) {
	if err == nil {
		return out.String(), exitOK
	}
	var f *failure
	if !errors.As(err, &f) {
		f = explain(err)
	}
	return out.String() + f.message + f.hint, f.code
}

// TestAFrameworkOfAFileIsSimulatedAsTheControllerWouldMakeIt: its Pods have the class of its gang, the labels that
// the controller gives them, and their names where the template asks for them.
func TestAFrameworkOfAFileIsSimulatedAsTheControllerWouldMakeIt(t *testing.T) {
	apart := func(label, value string) string {
		return fmt.Sprintf(`affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {%s: %q}}}]}},`, label, value)
	}
	for name, tc := range map[string]struct {
		gang, spec string
		nodes      []string
		busy       bool
		want       int
	}{
		"there is room":                           {nodes: []string{"a"}, want: exitOK},
		"its gang may evict":                      {gang: "gang: {priorityClassName: high},", nodes: []string{"a"}, busy: true, want: exitByEviction},
		"its gang may not evict":                  {gang: "gang: {priorityClassName: polite},", nodes: []string{"a"}, busy: true, want: exitNoRoom},
		"without a class it may not evict":        {nodes: []string{"a"}, busy: true, want: exitNoRoom},
		"its tasks keep each other off a node":    {spec: apart("FC_FRAMEWORK_NAME", "train"), nodes: []string{"a"}, want: exitNoRoom},
		"those of its role do":                    {spec: apart("FC_TASKROLE_NAME", "worker"), nodes: []string{"a"}, want: exitNoRoom},
		"they do, and there are nodes":            {spec: apart("FC_FRAMEWORK_NAME", "train"), nodes: []string{"a", "b"}, want: exitOK},
		"they do by a name that is still to come": {spec: apart("FC_FRAMEWORK_NAME", "{{FC_FRAMEWORK_NAME}}"), nodes: []string{"a"}, want: exitNoRoom},
		"a node is named like its namespace":      {spec: `nodeSelector: {kubernetes.io/hostname: "{{FC_FRAMEWORK_NAMESPACE}}"},`, nodes: []string{"team"}, want: exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			server, c := team(t, tc.nodes...)
			apiserver.Add(server, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 5})
			apiserver.Add(server, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "polite"}, Value: 5, PreemptionPolicy: new(corev1.PreemptNever)})
			if tc.busy {
				apiserver.Add(server, busy("team", "other", "a", "4"))
			}
			if out, code := simulated(t, c, manifest(tc.gang, tc.spec)); code != tc.want {
				t.Errorf("exit code %d, want %d:\n%s", code, tc.want, out)
			}
		})
	}
}

func TestAFrameworkThatCanNotBeMadeIsNotSimulated(t *testing.T) {
	_, c := team(t, "a")
	for manifest, want := range map[string]string{
		strings.Replace(manifest("", ""), "taskNumber: 2", "taskNumber: 0", 1):     "no tasks",
		strings.Replace(manifest("", ""), "taskNumber: 2", "taskNumber: -1", 1):    "-1 tasks",
		strings.Replace(manifest("", ""), "taskNumber: 2", "taskNumber: 10001", 1): "at most 10000",
		manifest("", "nodeName: 1,"): "no Pod template",
	} {
		if out, code := simulated(t, c, manifest); code != exitMisuse || !strings.Contains(out, want) {
			t.Errorf("exit code %d, and not %q: %s", code, want, out)
		}
	}
}

// TestWhoMayNotListAllPodsIsNotToldThatAGangFits: others may have the room.
func TestWhoMayNotListAllPodsIsNotToldThatAGangFits(t *testing.T) {
	server, c := team(t, "a")
	server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Resource == "pods" && r.Namespace == "" {
			return apiserver.Fault{Refusal: apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no role allows it"))}
		}
		return apiserver.Fault{}
	})
	if out, code := simulated(t, c, manifest("", "")); code != exitNoRoom || !strings.Contains(out, "is not known") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestGangsOfOtherNamespacesCanBeDoneWithout by who may list those namespaces, if not all.
func TestGangsOfOtherNamespacesCanBeDoneWithout(t *testing.T) {
	server, c := team(t, "a")
	apiserver.Add(server, &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "other-team", Name: "big"}, Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}})
	big := busy("other-team", "big-0", "a", "4")
	big.Labels = map[string]string{schedulingv1alpha1.LabelPodGroup: "big"}
	apiserver.Add(server, big)
	server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Verb == apiserver.List && r.Namespace == "" && (r.Resource == "pods" || r.Resource == "podgroups") {
			return apiserver.Fault{Refusal: apierrors.NewForbidden(corev1.Resource(r.Resource), "", errors.New("no role allows it"))}
		}
		return apiserver.Fault{}
	})
	without := func(name string) func(*simulateOptions) {
		return func(o *simulateOptions) { o.without = []string{name} }
	}
	if out, code := simulated(t, c, manifest("", ""), without("other-team/big")); code != exitNoRoom || !strings.Contains(out, "2 of 2 members have room") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	for _, name := range []string{"other-team/none", "none"} {
		if out, code := simulated(t, c, manifest("", ""), without(name)); code != exitNotFound || !strings.Contains(out, name) {
			t.Errorf("without %s: exit code %d:\n%s", name, code, out)
		}
	}
}

// TestAManifestIsOneFrameworkOfTheNamespaceThatIsAskedFor: all else would be simulated otherwise than it is meant.
func TestAManifestIsOneFrameworkOfTheNamespaceThatIsAskedFor(t *testing.T) {
	_, c := team(t, "a")
	in := func(namespace string) func(*simulateOptions) {
		return func(o *simulateOptions) { o.flags = &genericclioptions.ConfigFlags{Namespace: &namespace} }
	}
	there := strings.Replace(manifest("", ""), "name: train", "name: train, namespace: there", 1)
	for name, tc := range map[string]struct {
		manifest string
		change   func(*simulateOptions)
		want     int
		says     string
	}{
		"two documents":                        {manifest: manifest("", "") + "\n---\n" + manifest("", ""), want: exitMisuse, says: "several documents"},
		"another object before it":             {manifest: "kind: ConfigMap\n---\n" + manifest("", ""), want: exitMisuse, says: "several documents"},
		"no document":                          {manifest: "# nothing\n", want: exitMisuse, says: "one Framework"},
		"empty documents around it":            {manifest: "---\n# mine\n---\n" + manifest("", "") + "\n---\n", want: exitOK},
		"another namespace than is asked for":  {manifest: there, change: in("here"), want: exitMisuse, says: "there, and --namespace says here"},
		"the namespace that is asked for":      {manifest: there, change: in("there"), want: exitOK},
		"a namespace, and none is asked for":   {manifest: there, change: in(""), want: exitOK},
		"no namespace, where one is asked for": {manifest: manifest("", ""), change: in("team"), want: exitOK},
	} {
		change := tc.change
		if change == nil {
			change = func(*simulateOptions) {}
		}
		if out, code := simulated(t, c, tc.manifest, change); code != tc.want || !strings.Contains(out, tc.says) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", name, code, tc.want, tc.says, out)
		}
	}
}

func TestSimulateNamesFieldsThatTheAPIServerDrops(t *testing.T) {
	server, c := team(t, "node-1")
	apiserver.Add(server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	mistyped := strings.Replace(manifest("gang: {},", ""), "resources:", "resurces:", 1)
	said, code := simulated(t, c, mistyped)
	if code != exitOK || !strings.Contains(said, "spec.taskRoles[0].task.pod.spec.containers[0].resurces: unknown field") {
		t.Errorf("it ends with %d and says %s", code, said)
	}
	if said, _ := simulated(t, c, manifest("gang: {},", "")); strings.Contains(said, "unknown field") {
		t.Errorf("of a manifest without a fault it says %s", said)
	}
	server.SetHook(func(r *apiserver.Request) apiserver.Fault {
		if r.Verb == apiserver.DryRun {
			return apiserver.Fault{Refusal: apierrors.NewForbidden(corev1.Resource("pods"), "", nil)}
		}
		return apiserver.Fault{}
	})
	if said, code := simulated(t, c, mistyped); code != exitOK || strings.Contains(said, "unknown field") {
		t.Errorf("to a user who may not create Pods it ends with %d and says %s", code, said)
	}
}
