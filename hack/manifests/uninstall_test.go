// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
)

// What a documented command deletes: a folder; what a selector selects; or kinds by a name.
var (
	deletionOfFolder = regexp.MustCompile(`^kubectl delete (?:--ignore-not-found )?-k manifests/(\S+)$`)
	deletionByLabels = regexp.MustCompile(`^kubectl delete (\S+) (?:-A )?-l '?(.*?)'?$`)
	deletionByName   = regexp.MustCompile(`^kubectl (?:-n (\S+) )?delete --ignore-not-found (\S+) (\S+)$`)
)

// section is one of docs/install.md.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := documents.Section("../../docs/install.md", heading)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// matches are the commands of a text that an expression matches, with its groups.
func matches(text string, expression *regexp.Regexp) [][]string {
	var found [][]string
	for _, command := range documents.Commands(text) {
		if match := expression.FindStringSubmatch(command); match != nil {
			found = append(found, match)
		}
	}
	return found
}

// harmless is what is said under Uninstalling before its warning.
func harmless(t *testing.T) string {
	t.Helper()
	text, _, warned := strings.Cut(section(t, "Uninstalling"), "takes all jobs along")
	if !warned {
		t.Fatal("docs/install.md does not say under Uninstalling what takes all jobs along")
	}
	return text
}

// TestUninstallingTheProgramsDeletesNoJobs follows docs/install.md: jobs go with their kinds and their
// namespaces, and the commands that come before its warning delete neither.
func TestUninstallingTheProgramsDeletesNoJobs(t *testing.T) {
	commands := matches(harmless(t), deletionOfFolder)
	if len(commands) != 2 {
		t.Fatalf("docs/install.md has %d harmless deletions under Uninstalling, want those of two programs", len(commands))
	}
	for _, command := range commands {
		objects := objectsOf(t, root+"/"+command[1])
		if crds := of[*apiextensionsv1.CustomResourceDefinition](objects); len(crds) != 0 {
			t.Errorf("%s deletes the kinds %v, and all jobs with them", command[0], names(crds))
		}
		if namespaces := of[*corev1.Namespace](objects); len(namespaces) != 0 {
			t.Errorf("%s deletes the namespaces %v, and all that is in them", command[0], names(namespaces))
		}
	}
}

// TestUninstallingLeavesNoRights: whoever makes the namespace of Lockstep and its accounts later must not have their
// rights. Those of somebody else's accounts, as of FrameworkBarrier in a namespace of jobs, stay.
func TestUninstallingLeavesNoRights(t *testing.T) {
	deleted := map[string]bool{}
	for _, command := range matches(harmless(t), deletionOfFolder) {
		for key := range comparable(t, objectsOf(t, root+"/"+command[1])) {
			deleted[key] = true
		}
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "kustomization.yaml" {
			return err
		}
		for _, b := range bindings(objectsOf(t, filepath.Dir(path))) {
			got := deleted[b.key()] || selected(t, harmless(t), b.kind, b.labels)
			ofLockstep := slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return s.Namespace == namespace || s.Kind == rbacv1.UserKind })
			if b.namespace != namespace && got != ofLockstep {
				t.Errorf("%s: %s is deleted: %v, want %v", path, b.key(), got, ofLockstep)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestChangingToSeveralNamespacesLeavesNoRights: no apply deletes what a kustomization has no more.
func TestChangingToSeveralNamespacesLeavesNoRights(t *testing.T) {
	want := comparable(t, own(t, allInSomeNamespaces, nil))
	commands := section(t, "Several namespaces")
	found := 0
	for _, b := range bindings(objectsOf(t, root+"/overlays/integrations")) {
		if b.kind != "ClusterRoleBinding" || want[b.key()] != nil {
			continue
		}
		found++
		if !selected(t, commands, b.kind, b.labels) {
			t.Errorf("%s stays in the whole cluster", b.key())
		}
	}
	if found != 10 {
		t.Errorf("%d roles are bound in the whole cluster before, want 10", found)
	}
	for _, b := range bindings(objectsOf(t, root+"/dashboard")) {
		if selected(t, commands, b.kind, b.labels) {
			t.Errorf("%s goes, though the web page has its rights in the whole cluster", b.key())
		}
	}
}

// TestAStaticPodLeavesNoRightsOfTheDeployment, nor its account, which are not part of manifests/static.
func TestAStaticPodLeavesNoRightsOfTheDeployment(t *testing.T) {
	want := comparable(t, objectsOf(t, root+"/static"))
	deleted := map[string]bool{}
	for _, command := range matches(section(t, "As the only scheduler"), deletionByName) {
		for kind := range strings.SplitSeq(command[2], ",") {
			deleted[strings.Join([]string{kind, command[1], command[3]}, " ")] = true
		}
	}
	for key := range comparable(t, objectsOf(t, root+"/overlays/secondary-scheduler")) {
		kind, rest, _ := strings.Cut(key, " ")
		if gone := deleted[strings.ToLower(kind)+" "+rest]; gone != (want[key] == nil) {
			t.Errorf("%s: it is deleted: %v, and part of manifests/static: %v", key, gone, want[key] != nil)
		}
	}
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	kind, namespace, name string
	labels                map[string]string
	subjects              []rbacv1.Subject
}

// key is what comparable calls it.
func (b binding) key() string { return strings.Join([]string{b.kind, b.namespace, b.name}, " ") }

func bindings(objects []runtime.Object) []binding {
	var found []binding
	add := func(kind string, meta metav1.ObjectMeta, subjects []rbacv1.Subject) {
		found = append(found, binding{kind, meta.Namespace, meta.Name, meta.Labels, subjects})
	}
	for _, b := range of[*rbacv1.ClusterRoleBinding](objects) {
		add("ClusterRoleBinding", b.ObjectMeta, b.Subjects)
	}
	for _, b := range of[*rbacv1.RoleBinding](objects) {
		add("RoleBinding", b.ObjectMeta, b.Subjects)
	}
	return found
}

// selected says whether one of the commands deletes, by a selector, an object with such labels.
func selected(t *testing.T, commands, kind string, of map[string]string) bool {
	t.Helper()
	return slices.ContainsFunc(matches(commands, deletionByLabels), func(command []string) bool {
		selector, err := labels.Parse(command[2])
		if err != nil {
			t.Fatalf("%s: %v", command[0], err)
		}
		return command[1] == strings.ToLower(kind) && selector.Matches(labels.Set(of))
	})
}
