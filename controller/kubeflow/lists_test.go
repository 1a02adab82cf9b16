// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// spoken is what a container is told, arguments and variables, once the kubelet has looked up what
// they refer to.
func (w *world) spoken(pod string, container int) []string {
	w.T.Helper()
	p := w.settle().Pod(pod)
	if p == nil {
		w.T.Fatalf("there is no Pod %s", pod)
	}
	c := p.Spec.Containers[container]
	var known, spoken []string
	for _, e := range c.Env {
		value := strings.NewReplacer(known...).Replace(e.Value)
		if e.ValueFrom != nil {
			ref := e.ValueFrom.ConfigMapKeyRef
			config, ok := w.Objects[jobworld.Key{Kind: KindConfigMap, Name: ref.Name}].(*corev1.ConfigMap)
			if !ok || config.Data[ref.Key] == "" {
				w.T.Fatalf("%s refers to %s of the ConfigMap %s, which says nothing", e.Name, ref.Key, ref.Name)
			}
			value = config.Data[ref.Key]
		}
		known = append(known, "$("+e.Name+")", value)
		if !strings.HasPrefix(e.Name, "LOCKSTEP_") {
			spoken = append(spoken, e.Name+"="+value)
		}
	}
	for _, arg := range c.Args {
		spoken = append(spoken, strings.NewReplacer(known...).Replace(arg))
	}
	return spoken
}

// keepLists has no list written out.
func (w *world) keepLists() *world {
	w.core.options.MaxInline = 1
	return w
}

const (
	hostsOfTF     = "j-tfjob-hosts"
	tfWithLists   = "{tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 3, @t}}}"
	xgbWithLists  = "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 3, @t}}}"
	torchWithNone = "{pytorchReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 3, @t}}}"
)

// TestProgramsAreToldTheSameByLongLists as by those that are written out in each Pod.
func TestProgramsAreToldTheSameByLongLists(t *testing.T) {
	tests := map[string]struct {
		of         func(*testing.T, string) *world
		spec, pod  string
		configMaps []string
	}{
		"TFJob":                {of: given, spec: tfWithLists, pod: "j-worker-1", configMaps: []string{hostsOfTF}},
		"PS of a TFJob":        {of: given, spec: tfWithLists, pod: "j-ps-0", configMaps: []string{hostsOfTF}},
		"TFJob as designed":    {of: givenDesigned, spec: tfWithLists, pod: "j-worker-1-", configMaps: []string{hostsOfTF}},
		"TFJob of one Pod":     {of: given, spec: "{tfReplicaSpecs: {Worker: {@t}}}", pod: "j-worker-0"},
		"workers come and go":  {of: given, spec: "{enableDynamicWorker: true, tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 3, @t}}}", pod: "j-worker-1"},
		"XGBoostJob":           {of: givenXGBoost, spec: xgbWithLists, pod: "j-worker-1", configMaps: []string{"j-xgboostjob-hosts"}},
		"PyTorchJob, no lists": {of: givenTorch, spec: torchWithNone, pod: "j-worker-1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kept, inline := tc.of(t, tc.spec).keepLists(), tc.of(t, tc.spec)
			nameOf := func(w *world) string {
				for _, name := range w.settle().OwnPods() {
					if strings.HasPrefix(name, tc.pod) {
						return name
					}
				}
				return tc.pod
			}
			if diff := cmp.Diff(inline.spoken(nameOf(inline), 0), kept.spoken(nameOf(kept), 0)); diff != "" {
				t.Errorf("a program is told (-written out, +kept in a ConfigMap):\n%s", diff)
			}
			kept.has(KindConfigMap, tc.configMaps...)
			inline.has(KindConfigMap)
		})
	}
}

// TestAPodOfALargeJobIsSmall: what all are told is not in it.
func TestAPodOfALargeJobIsSmall(t *testing.T) {
	w := given(t, "{tfReplicaSpecs: {Worker: {replicas: 100, @t}}}").has(KindConfigMap, hostsOfTF)
	if config, _ := w.env("j-worker-7", 0, "TF_CONFIG"); config != `{"cluster":$(LOCKSTEP_TF_CLUSTER),"task":{"type":"worker","index":7},"environment":"cloud"}` {
		t.Errorf("TF_CONFIG is %s", config)
	}
	if spoken := strings.Join(w.spoken("j-worker-7", 0), "\n"); strings.Count(spoken, ".n.svc:2222") != 100 {
		t.Errorf("the program is told\n%s", spoken)
	}
}

// TestListsComeBeforeThePodsThatReadThem, and are the present ones for each Pod that is made.
func TestListsComeBeforeThePodsThatReadThem(t *testing.T) {
	w := sharing(given(t, tfWithLists)).keepLists()
	w.OnPlan = func(seen *view, p plan.Plan[status]) {
		config, ok := seen.Objects[jobworld.Key{Kind: KindConfigMap, Name: hostsOfTF}].(*corev1.ConfigMap)
		for _, a := range p.Actions {
			if a.Kind == KindPod && a.Verb == plan.Create && (!ok || !strings.Contains(config.Data[listCluster], `"`+a.Name+".")) {
				t.Errorf("%s before the list that has it", a)
			}
		}
	}
	w.has(KindPod, "j-ps-0", "j-worker-0", "j-worker-1", "j-worker-2")
	w.run("j-ps-0", "j-worker-0", "j-worker-1", "j-worker-2").scale("Worker", 4).has(KindPod, "j-ps-0", "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3")
	if got := strings.Join(w.spoken("j-worker-3", 0), ""); !strings.Contains(got, "j-worker-3.j-tfjob.n.svc") {
		t.Errorf("a new worker does not know itself: %s", got)
	}

	w.Remove(KindConfigMap, hostsOfTF)
	w.scale("Worker", 5).has(KindConfigMap, hostsOfTF).has(KindPod, "j-ps-0", "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3", "j-worker-4")
}

// listConfigOf is the ConfigMap with the lists that a Pod refers to. Empty for none.
func listConfigOf(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		for _, e := range container.Env {
			if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
				return e.ValueFrom.ConfigMapKeyRef.Name
			}
		}
	}
	return ""
}
