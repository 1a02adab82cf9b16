// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Installed says how a program that the machine has is told from one that would not do.
type Installed struct {
	// Ask are the arguments with which the program prints its version.
	Ask []string
	// Exactly is the only version that does, of a program of Kubernetes. Where it is empty, Oldest counts.
	Exactly string
	// Oldest is the oldest version that does. Later ones of the same major version do, too.
	Oldest Version
	// Folders are looked into in the place of PATH: other programs may have the same name there, as
	// iproute2's bridge has.
	Folders []string
}

// Version is a major and a minor version.
type Version struct{ Major, Minor int }

// installed has a row for each program of which several versions do. Programs of Kubernetes are not
// among them: they have to be of one version with each other and with the tests.
//
// Sources of the versions: Kubernetes 1.34 and later are tested with etcd 3.6; the configuration of the
// node is in containerd's version 3, which came with containerd 2.0, and in CNI 1.0, which came with
// version 1.0 of the plugins; the Corefile needs CoreDNS 1.8.
var installed = map[string]Installed{
	Etcd:           {Ask: []string{"--version"}, Oldest: Version{3, 6}},
	Containerd:     {Ask: []string{"--version"}, Oldest: Version{2, 0}},
	ContainerdShim: {Ask: []string{"-v"}, Oldest: Version{2, 0}},
	Ctr:            {Ask: []string{"--version"}, Oldest: Version{2, 0}},
	Runc:           {Ask: []string{"--version"}, Oldest: Version{1, 2}},
	CNIBridge:      {Oldest: Version{1, 0}, Folders: cniFolders},
	CNILoopback:    {Oldest: Version{1, 0}, Folders: cniFolders},
	CNIHostLocal:   {Oldest: Version{1, 0}, Folders: cniFolders},
	CoreDNS:        {Ask: []string{"-version"}, Oldest: Version{1, 8}},
}

// cniFolders are where packages put CNI plugins, which are in no PATH.
var cniFolders = []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}

// Installed says how to tell whether a program that was not built here will do for the component. It is
// false for one that is always built.
func (c Component) Installed() (Installed, bool) {
	if c.Kubernetes != "" {
		ask := []string{"--version"}
		if c.Name == Kubectl {
			ask = []string{"version", "--client"}
		}
		return Installed{Ask: ask, Exactly: c.Kubernetes}, true
	}
	i, ok := installed[c.Name]
	return i, ok
}

// kubernetesPattern finds the whole version, with what distributions append to it, in "Kubernetes v1.37.1"
// and in what kubectl prints.
var kubernetesPattern = regexp.MustCompile(`(?m)^(?:Kubernetes|Client Version:) (v\S+)\s*$`)

// versionPattern finds the first version of three numbers, as in "etcd Version: 3.6.5" and in
// "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7".
var versionPattern = regexp.MustCompile(`\b[vV]?(\d{1,5})\.(\d{1,5})\.\d+`)

// Fits says whether a program that printed this about itself will do, and which version it is of. The
// error says why it will not.
func (i Installed) Fits(printed string) (version string, err error) {
	if i.Exactly != "" {
		found := kubernetesPattern.FindStringSubmatch(printed)
		if found == nil {
			return "", errors.New("it does not tell its version")
		}
		if found[1] != i.Exactly {
			return found[1], fmt.Errorf("%s is not %s", found[1], i.Exactly)
		}
		return found[1], nil
	}
	found := versionPattern.FindStringSubmatch(printed)
	if found == nil {
		return "", errors.New("it does not tell its version")
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	if major != i.Oldest.Major || minor < i.Oldest.Minor {
		return found[0], fmt.Errorf("%s is not among %d.%d and later versions of %d", found[0], i.Oldest.Major, i.Oldest.Minor, i.Oldest.Major)
	}
	return found[0], nil
}
