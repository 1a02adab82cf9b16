// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// fixedKeys are always the same.
type fixedKeys struct{ err error }

func (k fixedKeys) NewKeys() (private, public []byte, err error) {
	return []byte("new private"), []byte("new public"), k.err
}

// secretOf is the Secret of plugin ssh.
func secretOf(t *testing.T, b *builder) map[string][]byte {
	t.Helper()
	for _, object := range b.sideObjects() {
		if object.Kind == KindSecret {
			secret, err := object.Build(fixedKeys{}.NewKeys)
			if err != nil {
				t.Fatal(err)
			}
			if secret.GetName() != "j-ssh" || object.Follows || len(secret.GetOwnerReferences()) != 1 {
				t.Errorf("got %s, following: %v, owners: %v", secret.GetName(), object.Follows, secret.GetOwnerReferences())
			}
			return secret.(*corev1.Secret).Data
		}
	}
	t.Fatal("there is no Secret")
	return nil
}

func TestSSHGivesAllPodsOnePairOfKeys(t *testing.T) {
	b := builderOf(t, "{plugins: {ssh: []}, tasks: [{name: a, replicas: 2, @t}, {name: b, replicas: 3, template: {spec: {hostname: h, subdomain: s, containers: [{name: c}]}}}]}")
	data := secretOf(t, b)
	for key, want := range map[string]string{
		"id_rsa": "new private", "id_rsa.pub": "new public", "authorized_keys": "new public",
		"config": "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n" +
			"Host j-a-0\n  HostName j-a-0.j\n  Port 22\nHost j-a-1\n  HostName j-a-1.j\n  Port 22\nHost h\n  HostName h.s\n  Port 22\n",
	} {
		expect(t, key, want, string(data[key]))
	}
	if len(data) != 4 {
		t.Errorf("got %d keys, want 4", len(data))
	}
}

func TestSSHMountsTheKeys(t *testing.T) {
	tests := map[string]struct {
		flags, path string
		mode        int32
	}{
		"of root":          {"", "/root/.ssh", 0o600},
		"of somebody else": {"--ssh-key-file-path=/home/me/.ssh", "/home/me/.ssh", 0o644},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builderOf(t, "{plugins: {ssh: ["+tc.flags+"]}, tasks: [{name: a, replicas: 1, template: {spec: {initContainers: [{name: i}], containers: [{name: c}]}}}]}").pod(0, 0, podMoment{})
			items := []corev1.KeyToPath{
				{Key: "id_rsa", Path: ".ssh/id_rsa"}, {Key: "id_rsa.pub", Path: ".ssh/id_rsa.pub"},
				{Key: "authorized_keys", Path: ".ssh/authorized_keys"}, {Key: "config", Path: ".ssh/config"},
			}
			expect(t, "volumes", []corev1.Volume{{Name: "j-ssh", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: "j-ssh", DefaultMode: &tc.mode, Items: items,
			}}}}, pod.Spec.Volumes)
			want := []string{"j-ssh at " + tc.path + " .ssh"}
			expect(t, "mounts of the init container", want, mountsOf(pod.Spec.InitContainers[0]))
			expect(t, "mounts of the container", want, mountsOf(pod.Spec.Containers[0]))
		})
	}
}

func TestFlagsOfSSH(t *testing.T) {
	const task = "tasks: [{name: a, replicas: 1, @t}]}"
	port := func(flags string) string {
		config := string(secretOf(t, builderOf(t, "{plugins: {ssh: ["+flags+"]}, "+task))["config"])
		_, port, _ := strings.Cut(config, "  Port ")
		return strings.TrimSpace(port)
	}
	for flags, want := range map[string]string{
		"--ssh-port=2026": "2026", "--ssh-port=70000": "22", "--ssh-port=0": "22", "--ssh-port=65535": "65535", "--no-root, --ssh-port=2026": "22",
	} {
		if got := port(flags); got != want {
			t.Errorf("port with %s: got %s, want %s", flags, got, want)
		}
	}
	given := secretOf(t, builderOf(t, "{plugins: {ssh: [--ssh-private-key=K, --ssh-public-key=P]}, "+task))
	expect(t, "given keys", []string{"K", "P", "P"}, []string{string(given["id_rsa"]), string(given["id_rsa.pub"]), string(given["authorized_keys"])})
	half := secretOf(t, builderOf(t, "{plugins: {ssh: [--ssh-private-key=K]}, "+task))
	expect(t, "a given private key", []string{"K", "", ""}, []string{string(half["id_rsa"]), string(half["id_rsa.pub"]), string(half["authorized_keys"])})
	public := secretOf(t, builderOf(t, "{plugins: {ssh: [--ssh-public-key=P]}, "+task))
	expect(t, "a given public key", []string{"new private", "new public"}, []string{string(public["id_rsa"]), string(public["authorized_keys"])})
}

func TestWithoutKeysThereIsNoSecret(t *testing.T) {
	b := builderOf(t, "{plugins: {ssh: []}, tasks: [{name: a, replicas: 1, @t}]}")
	failure := errors.New("no entropy")
	if _, err := b.sideObjects()[0].Build(fixedKeys{failure}.NewKeys); !errors.Is(err, failure) {
		t.Errorf("got %v, want that there is %v", err, failure)
	}
}
