// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// sideObject is an object that a plugin needs besides Pods. It is created before the Pods, and the Job is its
// controller.
type sideObject struct {
	Kind, Name string
	// Plugin is the plugin with the need.
	Plugin string
	// Object is the wanted object. Nil if there is Build.
	Object metav1.Object
	// Build builds the object if it contains new keys. It is called only if the object does not exist yet. Nil if
	// Object is set.
	Build func(jobpods.KeyMaker) (metav1.Object, error)
	// Follows says that the object is rewritten when the spec changes.
	Follows bool
	// Digest is that of the data, of an object that follows.
	Digest string
	// Lost is the warning for users if the object has to be recreated while Pods run; "" if nothing is lost by that.
	Lost string
}

// Names of the objects of plugins, beside the objects with the Job's name.
func svcConfigName(job string) string { return job + "-svc" }
func sshSecretName(job string) string { return job + "-ssh" }
func raySvcName(job string) string    { return job + "-head-svc" }

// SSHSecretOf returns the name of the Secret with the ssh keys of a Job's Pods; "" if no plugin of the Job needs ssh.
func SSHSecretOf(job *batchv1alpha1.Job) string {
	if _, needed := effectivePlugins(job.Spec.Plugins)[batchv1alpha1.PluginSSH]; !needed {
		return ""
	}
	return sshSecretName(job.Name)
}

// pluginObjects returns all objects that any plugin may have created for a Job, even if the spec no longer has the
// plugin.
func pluginObjects(job string) []ObjectKey {
	return []ObjectKey{
		{KindConfigMap, svcConfigName(job)}, {KindService, job}, {KindNetworkPolicy, job},
		{KindSecret, sshSecretName(job)}, {KindService, raySvcName(job)},
	}
}

// sideObjects returns the objects that the plugins of the Job need, in the order of creation.
func (b *builder) sideObjects() []sideObject {
	var objects []sideObject
	for _, p := range b.plugins {
		objects = append(objects, p.objects()...)
	}
	return objects
}

// differs reports whether an existing object has to be rewritten.
func (o sideObject) differs(existing metav1.Object) bool {
	if !o.Follows {
		return false
	}
	found, ok := existing.(*ConfigMap)
	return ok && o.Digest != found.Digest
}

// metadata is that of an object of the Job.
func (b *builder) metadata(name string) metav1.ObjectMeta {
	return metadataOf(b.job, name)
}

// metadataOf is described at metadata. By its labels the controller finds the object.
func metadataOf(job *batchv1alpha1.Job, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: job.Namespace,
		Labels:          map[string]string{batchv1alpha1.KeyJobName: job.Name, batchv1alpha1.KeyJobNamespace: job.Namespace},
		OwnerReferences: []metav1.OwnerReference{ownerOf(job)},
	}
}
