// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReplaceImages(t *testing.T) {
	const service = "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  image: not of a container\n"
	for name, tc := range map[string]struct {
		manifest, want, wantName string
	}{
		"the images of a Framework, and of nothing else": {
			manifest: "kind: Framework\nmetadata: {name: f}\npod: {containers: [{image: a}], initContainers: [{image: x/frameworkbarrier:1}]}\n" + service,
			want: "---\nkind: Framework\nmetadata:\n  name: f\npod:\n" +
				"  containers:\n  - image: lockstep.dev/toolbox:dev\n    imagePullPolicy: Never\n" +
				"  initContainers:\n  - image: lockstep.dev/frameworkbarrier:dev\n    imagePullPolicy: Never\n" + service,
			wantName: "f",
		},
		"the images of a Volcano Job, but not those of examples": {
			manifest: "kind: Job\nmetadata: {name: j}\nc: [{image: a}, {image: lockstep.dev/rollcall:dev}]\n",
			want: "---\nc:\n- image: lockstep.dev/toolbox:dev\n  imagePullPolicy: Never\n- image: lockstep.dev/rollcall:dev\n" +
				"kind: Job\nmetadata:\n  name: j\n",
			wantName: "j",
		},
		"nothing of a file without objects": {manifest: "workerNumber: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, gotName, err := ReplaceImages([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || gotName != tc.wantName {
				t.Errorf("the last one is %q, want %q; manifest (-want,+got):\n%s", gotName, tc.wantName, diff)
			}
		})
	}
}
