// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

// TestAQuestionMayHaveThePodGroupsThatTheAPIServerTakes, and no others.
func TestAQuestionMayHaveThePodGroupsThatTheAPIServerTakes(t *testing.T) {
	validator := crd.Of(t, "../../manifests/crds/scheduling.lockstep.dev_podgroups.yaml")
	levels := func(n int) (all []schedulingv1alpha1.TopologyConstraint) {
		for i := range n {
			all = append(all, schedulingv1alpha1.TopologyConstraint{Key: fmt.Sprint("rack", i), Mode: schedulingv1alpha1.TopologyRequired})
		}
		return all
	}
	roles := func(n int, least int32) map[string]int32 {
		all := make(map[string]int32)
		for i := range n {
			all[fmt.Sprint("role", i)] = least
		}
		return all
	}
	amounts := func(n int) map[corev1.ResourceName]resource.Quantity {
		all := make(map[corev1.ResourceName]resource.Quantity)
		for i := range n {
			all[corev1.ResourceName(fmt.Sprint("example.com/", i))] = resource.MustParse("1")
		}
		return all
	}
	for name, spec := range map[string]schedulingv1alpha1.PodGroupSpec{
		"the least":               {MinMember: 1},
		"a minimum of none":       {},
		"four levels":             {MinMember: 1, Topology: levels(4)},
		"five levels":             {MinMember: 1, Topology: levels(5)},
		"a level without a key":   {MinMember: 1, Topology: []schedulingv1alpha1.TopologyConstraint{{Mode: schedulingv1alpha1.TopologyRequired}}},
		"a level of a long key":   {MinMember: 1, Topology: []schedulingv1alpha1.TopologyConstraint{{Key: strings.Repeat("x", 317), Mode: schedulingv1alpha1.TopologyRequired}}},
		"a level of another mode": {MinMember: 1, Topology: []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: "Perhaps"}}},
		"256 roles":               {MinMember: 1, MinRoleMember: roles(256, 1)},
		"257 roles":               {MinMember: 1, MinRoleMember: roles(257, 1)},
		"a role of none":          {MinMember: 1, MinRoleMember: roles(1, 0)},
		"64 resources":            {MinMember: 1, MinResources: amounts(64)},
		"65 resources":            {MinMember: 1, MinResources: amounts(65)},
		"a long class":            {MinMember: 1, PriorityClassName: strings.Repeat("x", 254)},
		"a long queue":            {MinMember: 1, Queue: strings.Repeat("x", 254)},
		"members go one by one":   {MinMember: 1, DisruptionMode: schedulingv1alpha1.DisruptPod},
		"another mode of that":    {MinMember: 1, DisruptionMode: "None"},
	} {
		group := &schedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: spec}
		group.APIVersion, group.Kind = schedulingv1alpha1.SchemeGroupVersion.String(), "PodGroup"
		data, err := json.Marshal(group)
		if err != nil {
			t.Fatal(err)
		}
		object := make(map[string]any)
		if err := json.Unmarshal(data, &object); err != nil {
			t.Fatal(err)
		}
		if refused := validator.Create(t, object); (len(refused) > 0) != (checkSpec(&spec) != nil) {
			t.Errorf("%s: the API server says %v, and we %v", name, refused, checkSpec(&spec))
		}
	}
}

// asked is what is answered about a new gang of one role on two nodes.
func asked(count int, template corev1.PodTemplateSpec) (answers.Simulation, error) {
	other, _ := gangOf("other", 1)
	s := cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, other)
	return Ask(s, &answers.Question{Namespace: "team", Name: "train", Gang: &answers.Gang{
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1}, Roles: []answers.Role{{Name: "w", Count: count, Template: template}}}})
}

// TestManyPodsOfALargeTemplateCostLittleMemory: a question has a megabyte, and may ask for 10,000 Pods.
func TestManyPodsOfALargeTemplateCostLittleMemory(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: ordinary("x", "1").Spec}
	for range 8 {
		term := corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: strings.Repeat("k", 1<<17), Operator: corev1.NodeSelectorOpExists}}}}
		if template.Spec.Affinity == nil {
			template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		}
		terms := &template.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*terms = append(*terms, term)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer, err := asked(answers.MaxPods, template)
	runtime.ReadMemStats(&after)
	if err != nil || !answer.Fits {
		t.Fatalf("%v, %+v", err, answer)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 200 {
		t.Errorf("it took %d MiB", used)
	}
}

// TestAQuestionThatWouldCostTooMuchIsRefused, or answered by that.
func TestAQuestionThatWouldCostTooMuchIsRefused(t *testing.T) {
	many := func(do func(pod *corev1.Pod, i int)) corev1.PodTemplateSpec {
		pod := ordinary("x", "1")
		for i := range 20_000 {
			do(pod, i)
		}
		return corev1.PodTemplateSpec{Spec: pod.Spec}
	}
	near := func(pod *corev1.Pod) *[]corev1.PodAffinityTerm {
		if pod.Spec.Affinity == nil {
			pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}
		}
		return &pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	together := ordinary("x", "1")
	for i := range maxLevels + 1 {
		terms := near(together)
		*terms = append(*terms, corev1.PodAffinityTerm{TopologyKey: fmt.Sprint("rack", i), LabelSelector: &metav1.LabelSelector{}})
	}
	for name, template := range map[string]corev1.PodTemplateSpec{
		"terms of affinity": many(func(pod *corev1.Pod, i int) {
			terms := near(pod)
			*terms = append(*terms, corev1.PodAffinityTerm{TopologyKey: fmt.Sprint("rack", i), LabelSelector: &metav1.LabelSelector{}})
		}),
		"host ports": many(func(pod *corev1.Pod, i int) {
			pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: int32(i + 1)})
		}),
		"tolerations": many(func(pod *corev1.Pod, i int) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprint(i)})
		}),
		"resources": many(func(pod *corev1.Pod, i int) {
			asking(corev1.ResourceName(fmt.Sprint("example.com/", i)), "1")(pod)
		}),
		"topologies": {Spec: together.Spec},
	} {
		if answer, err := asked(2, template); err != nil || answer.Fits || !strings.Contains(answer.Message, "too many") {
			t.Errorf("%s: %v, %+v", name, err, answer)
		}
	}
	for name, question := range map[string]*answers.Question{
		"a long name":  {Namespace: "team", Name: strings.Repeat("x", 64)},
		"a long role":  {Namespace: "team", Name: "train", Gang: &answers.Gang{Roles: []answers.Role{{Name: strings.Repeat("x", 64)}}}},
		"many roles":   {Namespace: "team", Name: "train", Gang: &answers.Gang{Roles: make([]answers.Role, maxRoles+1)}},
		"five levels":  {Namespace: "team", Name: "train", Gang: &answers.Gang{Spec: schedulingv1alpha1.PodGroupSpec{Topology: make([]schedulingv1alpha1.TopologyConstraint, 5)}}},
		"no such name": {Namespace: "team", Name: "none"},
	} {
		if question.Gang == nil && name != "no such name" {
			question.Gang = &answers.Gang{}
		}
		if question.Gang != nil {
			question.Gang.Spec.MinMember = 1
		}
		other, _ := gangOf("other", 1)
		if _, err := Ask(cluster(nil, other), question); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestAnAnswerIsGivenUpWhenNobodyWaitsForIt, wherever in it that is.
func TestAnAnswerIsGivenUpWhenNobodyWaitsForIt(t *testing.T) {
	group, pods := gangOf("train", 2)
	asking(corev1.ResourceCPU, "2")(pods[1])
	s := cluster([]*corev1.Node{node("a", "8"), node("b", "8")}, group, pods...)
	looks, most := 0, 1<<30
	s.Over = func() bool { looks++; return looks > most }
	if answer := simulate(t, s); !answer.Fits || looks < 5 {
		t.Fatalf("it is looked %d times: %s", looks, answer.Message)
	}
	all := looks
	for most = range all {
		looks = 0
		if answer := simulate(t, s); answer.Fits {
			t.Errorf("over after %d looks, all of the answer is worked out", most)
		}
	}
}
