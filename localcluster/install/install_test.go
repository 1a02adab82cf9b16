// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/manifests"
)

func file(content string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(content)}
}

func TestManifests(t *testing.T) {
	const (
		crd       = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
		role      = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"
		namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n"
		account   = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s, namespace: ns}\n"
	)
	tests := map[string]struct {
		files   fstest.MapFS
		want    []string
		wantErr string
	}{
		"what others live in comes first": {
			files: fstest.MapFS{
				"crds/a.yaml":              file(crd),
				"controller/rbac.yaml":     file(account + "---\n" + role),
				"namespace/namespace.yaml": file(namespace),
				"scheduler/rbac.yaml":      file("# nothing\n"),
				"rbac/a.yaml":              file("# nothing\n"),
			},
			want: []string{"CustomResourceDefinition a", "Namespace ns", "ServiceAccount s", "ClusterRole r"},
		},
		"empty documents and kustomizations are no objects": {
			files: fstest.MapFS{
				"crds/a.yaml":              file("---\n# nothing\n---\n" + crd),
				"crds/kustomization.yaml":  file("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n"),
				"controller/rbac.yaml":     file(role),
				"scheduler/rbac.yaml":      file("# nothing\n"),
				"rbac/a.yaml":              file("# nothing\n"),
				"namespace/namespace.yaml": file("# nothing\n"),
			},
			want: []string{"CustomResourceDefinition a", "ClusterRole r"},
		},
		"a folder without manifests is a mistake": {
			files:   fstest.MapFS{"crds/a.yaml": file(crd)},
			wantErr: "namespace/namespace.yaml matches nothing",
		},
		"a broken file is named": {
			files:   fstest.MapFS{"crds/a.yaml": file("kind: [")},
			wantErr: "crds/a.yaml",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := Manifests(tc.files)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, describe(o))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objects (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestBuiltInManifestsCanBeRead(t *testing.T) {
	objects, err := Manifests(manifests.FS)
	if err != nil {
		t.Fatal(err)
	}
	if rank(objects[0]) != 0 {
		t.Errorf("the first object is %s, want a CRD", describe(objects[0]))
	}
}
