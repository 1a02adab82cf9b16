// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-k8s/lockstep/internal/testing/documents"
)

// own are the objects of a kustomization of somebody's own, beside checkouts of Lockstep in ../lockstep and
// ../lockstep-v1, and beside files of his own.
func own(t *testing.T, kustomization string, files map[string]string) []runtime.Object {
	t.Helper()
	repository, err := filepath.Abs(root + "/..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, checkout := range []string{"lockstep", "lockstep-v1"} {
		if err := os.Symlink(repository, filepath.Join(dir, checkout)); err != nil {
			t.Fatal(err)
		}
	}
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all["kustomization.yaml"] = kustomization
	for name, content := range all {
		path := filepath.Join(dir, "own", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return objectsOf(t, filepath.Join(dir, "own"))
}

// documented is the one example in YAML of a document that has these words.
func documented(t *testing.T, document, words string) string {
	t.Helper()
	example, err := documents.YAML("../../docs/"+document, words)
	if err != nil {
		t.Fatal(err)
	}
	return example
}

// images are those of the Deployments, by their names.
func images(objects []runtime.Object) map[string]string {
	images := map[string]string{}
	for _, d := range of[*appsv1.Deployment](objects) {
		images[d.Name] = d.Spec.Template.Spec.Containers[0].Image
	}
	return images
}

// TestARollbackKeepsWhatIsYourOwn: what docs/install.md says for a rollback has all that an installation has but the kinds,
// with images and configuration as they were, and whatever the installation is.
func TestARollbackKeepsWhatIsYourOwn(t *testing.T) {
	rollback := documented(t, "install.md", "without-crds")
	objects := own(t, rollback, nil)
	if diff := cmp.Diff(map[string]string{
		"lockstep-controller": "registry.example.com/lockstep/controller:v1",
		"lockstep-scheduler":  "registry.example.com/lockstep/scheduler:v1",
	}, images(objects)); diff != "" {
		t.Errorf("images (-want,+got):\n%s", diff)
	}
	for _, folder := range overlays(t) {
		overlay := filepath.Base(folder)
		want := comparable(t, objectsOf(t, folder))
		maps.DeleteFunc(want, func(key string, _ map[string]any) bool { return strings.HasPrefix(key, "CustomResourceDefinition ") })
		got := own(t, strings.ReplaceAll(rollback[:strings.Index(rollback, "images:")], "secondary-scheduler", overlay), nil)
		if crds := of[*apiextensionsv1.CustomResourceDefinition](got); len(crds) > 0 {
			t.Errorf("%s: the rollback changes the kinds %v", overlay, names(crds))
		}
		if diff := cmp.Diff(want, comparable(t, got)); diff != "" {
			t.Errorf("%s: objects of the installation (-) and of the rollback (+):\n%s", overlay, diff)
		}
	}
}

// TestNoDocumentAppliesAPart: a part of the manifests has the shipped images and configuration, and rights in the whole
// cluster, so over an installation it would undo what is somebody's own.
func TestNoDocumentAppliesAPart(t *testing.T) {
	part := regexp.MustCompile(`kubectl apply .*-k \S*manifests/(controller|scheduler)\b`)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range documents.Commands(string(text)) {
			if part.MatchString(command) {
				t.Errorf("%s: %s", page, command)
			}
		}
	}
}

// TestMoreSchedulerNamesAreAPatch, which the next apply keeps: what another command writes to the Deployment is in its way.
func TestMoreSchedulerNamesAreAPatch(t *testing.T) {
	patch := documented(t, "other-podgroups.md", "ALSO_SERVE")
	for _, d := range of[*appsv1.Deployment](own(t, "resources: [../lockstep/manifests/overlays/secondary-scheduler]\n"+patch, nil)) {
		if d.Name != "lockstep-scheduler" {
			continue
		}
		values := map[string]string{}
		for _, env := range d.Spec.Template.Spec.Containers[0].Env {
			values[env.Name] = env.Value
		}
		want := map[string]string{"ALSO_SERVE": "scheduler-plugins-scheduler", "NAMESPACES": "", "GOMEMLIMIT": ""}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Errorf("variables of the scheduler (-want,+got):\n%s", diff)
		}
	}
}

// TestPoliciesInAnotherNamespaceFindTheirLimits: without their ConfigMap they refuse everything.
func TestPoliciesInAnotherNamespaceFindTheirLimits(t *testing.T) {
	for where, objects := range map[string][]runtime.Object{
		"lockstep-system": objectsOf(t, root+"/policies"),
		"gangs":           own(t, documented(t, "security.md", "manifests/policies"), nil),
	} {
		limits := of[*corev1.ConfigMap](objects)
		if len(limits) != 1 || limits[0].Namespace != where {
			t.Fatalf("the limits are %v, want them in %s", limits, where)
		}
		found := 0
		for _, b := range of[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects) {
			if p := b.Spec.ParamRef; p != nil {
				found++
				if p.Name != limits[0].Name || p.Namespace != where {
					t.Errorf("%s looks for its limits in %s/%s, and they are in %s", b.Name, p.Namespace, p.Name, where)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d policies have limits, want 2", found)
		}
	}
}

// severalNamespaces is the kustomization of overlays/several-namespaces for other namespaces.
func severalNamespaces(t *testing.T, namespaces ...string) []runtime.Object {
	t.Helper()
	kustomization, err := os.ReadFile(root + "/overlays/several-namespaces/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(root + "/overlays/several-namespaces/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	renamed := []string{
		"../../", "../lockstep/manifests/",
		"../secondary-scheduler", "../lockstep/manifests/overlays/secondary-scheduler",
		"team-a,team-b", strings.Join(namespaces, ","),
		"- team-a\n- team-b", "- " + strings.Join(namespaces, "\n- "),
	}
	for _, namespace := range namespaces {
		files[namespace+"/kustomization.yaml"] = fmt.Sprintf("namespace: %s\nresources: [../../lockstep/manifests/namespaced/namespace]\n", namespace)
	}
	replace := strings.NewReplacer(renamed...).Replace
	files["config.yaml"] = replace(string(config))
	return own(t, replace(string(kustomization)), files)
}
