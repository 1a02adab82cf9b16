// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"fmt"
	"strings"
)

// KubernetesVersion is the version that the Kubernetes programs of a cluster report where no
// other release is asked for. It is the version of k8s.io/kubernetes in pins/kubernetes.mod; a
// test holds the two together.
const KubernetesVersion = "v1.37.1"

// Release is a version of Kubernetes of which a control plane can be built. Only its
// kube-apiserver and kube-controller-manager differ from one release to the other.
type Release struct {
	// Minor is the name of the release: major and minor version, such as 1.37.
	Minor string
	// Version is what its programs report. It is the version of k8s.io/kubernetes in the pin.
	Version string
	// pin is the pin of its programs.
	pin string
}

// Releases lists what there is, the newest first. The newest is the one whose kube-scheduler
// is in lockstep-scheduler.
func Releases() []Release {
	return []Release{
		{Minor: "1.37", Version: KubernetesVersion, pin: "kubernetes"},
		{Minor: "1.36", Version: "v1.36.3", pin: "kubernetes-1.36"},
		{Minor: "1.35", Version: "v1.35.4", pin: "kubernetes-1.35"},
		{Minor: "1.34", Version: "v1.34.4", pin: "kubernetes-1.34"},
	}
}

// Newest is the release that a cluster has where no other is asked for.
func Newest() Release { return Releases()[0] }

// FindRelease returns the release of a name; an empty name means the newest. The error begins
// with the name, so that a caller can put the flag in front of it.
func FindRelease(minor string) (Release, error) {
	if minor == "" {
		return Newest(), nil
	}
	var known []string
	for _, r := range Releases() {
		if r.Minor == minor {
			return r, nil
		}
		known = append(known, r.Minor)
	}
	last := len(known) - 1
	return Release{}, fmt.Errorf("%q is not known: it is one of %s and %s", minor, strings.Join(known[:last], ", "), known[last])
}

// program is a program of k8s.io/kubernetes. Without the version variables, which the upstream
// build scripts set, it would report v0.0.0-master and refuse or misreport skews.
func (r Release) program(name string) Component {
	parts := strings.SplitN(strings.TrimPrefix(r.Version, "v"), ".", 3)
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+r.Version,
			"-X "+pkg+".gitMajor="+parts[0],
			"-X "+pkg+".gitMinor="+parts[1])
	}
	c := Component{
		Name:        name,
		Pin:         r.pin,
		Kubernetes:  r.Version,
		Package:     "k8s.io/kubernetes/cmd/" + name,
		LinkerFlags: strings.Join(flags, " "),
	}
	if r != Newest() {
		c.Version = r.Version
	}
	return c
}
