//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// documented finds where an example's comments say that it gets to:
//
//	# End: STATE[ with code N][, in attempt N][, task ROLE-N in attempt N].
var documented = regexp.MustCompile(`(?m)^# End: (\w+)(?: with code (-?\d+))?(?:, in attempt (\d+))?(?:, task (\w+)-(\d+) in attempt (\d+))?\.$`)

// ending is where an example gets to.
type ending struct {
	state frameworkv1.FrameworkState
	code  frameworkv1.CompletionCode // of Completed
	// attempt of the Framework. What is not told of attempts is the first.
	attempt     int32
	role        string // empty if nothing is told of a task
	index       int
	taskAttempt int32
}

func parseEnding(manifest []byte) (ending, error) {
	found := documented.FindSubmatch(manifest)
	if found == nil {
		return ending{}, fmt.Errorf("no comment matches %s", documented)
	}
	var numbers [7]int
	for _, i := range []int{2, 3, 5, 6} {
		if len(found[i]) == 0 {
			continue
		}
		var err error
		if numbers[i], err = strconv.Atoi(string(found[i])); err != nil {
			return ending{}, err
		}
	}
	return ending{
		state: frameworkv1.FrameworkState(found[1]), code: frameworkv1.CompletionCode(numbers[2]), attempt: int32(numbers[3]),
		role: string(found[4]), index: numbers[5], taskAttempt: int32(numbers[6]),
	}, nil
}

// reached says whether a Framework is there.
func (e ending) reached(fw *frameworkv1.Framework) bool {
	s := fw.Status
	if s == nil || s.State != e.state || s.AttemptStatus.ID != e.attempt {
		return false
	}
	if s.State == frameworkv1.FrameworkCompleted && s.AttemptStatus.CompletionStatus.Code != e.code {
		return false
	}
	if e.role == "" {
		return true
	}
	for _, role := range s.AttemptStatus.TaskRoleStatuses {
		if role.Name == e.role && e.index < len(role.TaskStatuses) {
			return role.TaskStatuses[e.index].AttemptStatus.ID == e.taskAttempt
		}
	}
	return false
}

// TestExamples runs every manifest of examples/ to its documented end.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples (%v)", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, []byte("kind: "+frameworkv1.FrameworkKind)) {
			continue // controller-config.yaml; its test is in docs
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			want, err := parseEnding(content)
			if err != nil {
				t.Fatal(err)
			}
			manifest, name, err := testbed.ReplaceImages(content)
			if err != nil {
				t.Fatal(err)
			}
			namespace := cluster.Namespace(t)
			cluster.GrantBarrier(t, namespace)
			makeKeys(t, namespace)
			if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			cluster.WaitFramework(t, namespace, name, "get to what its comments say", want.reached)
		})
	}
}

// makeKeys makes the Secret that the comments of mpi.yaml make.
func makeKeys(t *testing.T, namespace string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "mpi-ssh"},
		Data:       map[string][]byte{"id_rsa": pem.EncodeToMemory(block), "authorized_keys": ssh.MarshalAuthorizedKey(key)},
	}
	if _, err := cluster.Kube.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
