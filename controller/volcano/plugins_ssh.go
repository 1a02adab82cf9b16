// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// sshPlugin gives all Pods of a Job the same pair of keys, so that they can log in to each other.
type sshPlugin struct {
	b               *builder
	path            string
	private, public string
	port            int32
	name, volume    string
}

const (
	defaultSSHPath = "/root/.ssh"
	defaultSSHPort = 22
	// sshFolder is the part of the volume that is mounted.
	sshFolder = ".ssh"
)

// Keys of the Secret, which are the names of the files.
const (
	sshPrivateKey     = "id_rsa"
	sshPublicKey      = "id_rsa.pub"
	sshAuthorizedKeys = "authorized_keys"
	sshConfig         = "config"
)

func newSSHPlugin(b *builder, flags []string) (plugin, string) {
	p := &sshPlugin{b: b, path: defaultSSHPath, port: defaultSSHPort, name: sshSecretName(b.job.Name), volume: volumeName(b.job.Name, "ssh")}
	f := newPluginFlags(batchv1alpha1.PluginSSH)
	f.text(&p.path, "ssh-key-file-path")
	f.text(&p.private, "ssh-private-key")
	f.text(&p.public, "ssh-public-key")
	f.number(&p.port, "ssh-port")
	problem := f.parse(flags)
	if p.port < 1 || p.port > 65535 {
		p.port = defaultSSHPort
	}
	return p, problem
}

func (p *sshPlugin) change(pod *corev1.Pod, _ int, _ int32) {
	mode := int32(0o600)
	if p.path != defaultSSHPath {
		mode = 0o644 // Whoever is at home there may not be root.
	}
	source := &corev1.SecretVolumeSource{SecretName: p.name, DefaultMode: &mode}
	for _, key := range []string{sshPrivateKey, sshPublicKey, sshAuthorizedKeys, sshConfig} {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: sshFolder + "/" + key})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: p.volume, VolumeSource: corev1.VolumeSource{Secret: source}})
	for _, container := range jobpods.AllContainers(&pod.Spec) {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: p.volume, MountPath: p.path, SubPath: sshFolder})
	}
}

// objects returns the Secret. It is not changed when the spec changes, because containers would not notice: they mount
// single files of the volume.
func (p *sshPlugin) objects() []sideObject {
	object := sideObject{Kind: KindSecret, Name: p.name, Plugin: batchv1alpha1.PluginSSH, Build: p.secret}
	if p.private == "" {
		object.Lost = fmt.Sprintf("The Secret %s was deleted while Pods run. A new one with new keys was created: new Pods can't log in to running ones. Use RestartJob to restart all Pods with the same keys", p.name)
	}
	return []sideObject{object}
}

// secret returns the Secret. It contains the keys that the user has given, or else new keys.
func (p *sshPlugin) secret(keys jobpods.KeyMaker) (metav1.Object, error) {
	private, public := []byte(p.private), []byte(p.public)
	if p.private == "" {
		var err error
		if private, public, err = keys(); err != nil {
			return nil, fmt.Errorf("making the keys of plugin ssh: %w", err)
		}
	}
	return &corev1.Secret{
		ObjectMeta: p.b.metadata(p.name),
		Data: map[string][]byte{
			sshPrivateKey:     private,
			sshPublicKey:      public,
			sshAuthorizedKeys: public,
			sshConfig:         []byte(p.config()),
		},
	}, nil
}

// sshHeader begins the configuration, and sshHost is the part for each Pod.
const (
	sshHeader = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
	sshHost   = "Host %s\n  HostName %s\n  Port %d\n"
)

// size returns the size of the configuration in bytes, without writing the text.
func (p *sshPlugin) size() int {
	size := len(sshHeader)
	for place := range p.b.spec.Tasks {
		size += int(p.b.distinctHosts(place))*len(fmt.Sprintf(sshHost, "", "", p.port)) +
			p.b.bytesOf(place, p.b.hostName) + p.b.bytesOf(place, p.b.host)
	}
	return size
}

// config has ssh find the Pods by their short names.
func (p *sshPlugin) config() string {
	var config strings.Builder
	config.WriteString(sshHeader)
	for place := range p.b.spec.Tasks {
		for index := range p.b.distinctHosts(place) {
			fmt.Fprintf(&config, sshHost, p.b.hostName(place, index), p.b.host(place, index), p.port)
		}
	}
	return config.String()
}
