// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// RenderFramework is the content of framework.json: the Framework as compact
// JSON, as it was seen, without apiVersion and kind, as FrameworkController's
// barrier writes it.
func RenderFramework(framework *frameworkv1.Framework) ([]byte, error) {
	bare := *framework
	bare.TypeMeta = metav1.TypeMeta{}
	data, err := json.Marshal(&bare)
	if err != nil {
		return nil, fmt.Errorf("encoding the Framework: %w", err)
	}
	return data, nil
}

// RenderInjector is the content of injector.sh, a script to be sourced by any
// POSIX shell. For each role that is in both status and spec, in the order of the
// status, it exports
//
//	FB_{ROLE}_IPS={task 0's IP},{task 1's IP},…
//	FB_{ROLE}_ADDRESSES={task 0's IP}:${FB_{ROLE}_PORT},…
//
// with an IPv6 address in brackets in ADDRESSES. The ports are for the caller to
// set. Without a status it does nothing.
//
// Role names and addresses become part of a script, so one that is not what it
// claims to be is an error, not a command.
func RenderInjector(framework *frameworkv1.Framework) ([]byte, error) {
	var script bytes.Buffer
	fmt.Fprintln(&script, "#!/bin/bash")
	if framework.Status == nil {
		return script.Bytes(), nil
	}
	roles, err := addressesByRole(framework)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(&script, `echo "Setting the addresses of the tasks."`)
	for _, role := range roles {
		export(&script, role.variable("IPS"), role.ips)
	}
	for _, role := range roles {
		export(&script, role.variable("ADDRESSES"), role.endpoints())
	}
	fmt.Fprintln(&script, `echo "The addresses of the tasks are set."`)
	return script.Bytes(), nil
}

// export sets a variable to a list and shows it. The values hold nothing that a
// shell would split or expand, apart from the ports that are meant to be expanded.
func export(script *bytes.Buffer, variable string, values []string) {
	fmt.Fprintf(script, "export %s=%s\n", variable, strings.Join(values, ","))
	fmt.Fprintf(script, "echo \"%s=${%s}\"\n", variable, variable)
}

// roleAddresses are the addresses of a role's tasks, by index.
type roleAddresses struct {
	role string
	ips  []string
}

func (r roleAddresses) variable(suffix string) string {
	return "FB_" + strings.ToUpper(r.role) + "_" + suffix
}

// endpoints are the addresses with the port that the script's caller sets.
func (r roleAddresses) endpoints() []string {
	port := ":${" + r.variable("PORT") + "}"
	endpoints := make([]string, len(r.ips))
	for i, ip := range r.ips {
		if strings.Contains(ip, ":") {
			ip = "[" + ip + "]" // As in RFC 3986, section 3.2.2.
		}
		endpoints[i] = ip + port
	}
	return endpoints
}

func addressesByRole(framework *frameworkv1.Framework) ([]roleAddresses, error) {
	numbers := make(map[string]int32, len(framework.Spec.TaskRoles))
	for i := range framework.Spec.TaskRoles {
		numbers[framework.Spec.TaskRoles[i].Name] = framework.Spec.TaskRoles[i].TaskNumber
	}
	var roles []roleAddresses
	for _, status := range framework.Status.AttemptStatus.TaskRoleStatuses {
		if status == nil {
			continue
		}
		number, ok := numbers[status.Name]
		if !ok {
			continue
		}
		if !isRoleName(status.Name) {
			return nil, fmt.Errorf("task role %q is not named by lower-case letters and digits", status.Name)
		}
		role := roleAddresses{role: status.Name}
		for index, task := range wanted(status.TaskStatuses, int(max(number, 0))) {
			ip := podIP(task)
			if addr, err := netip.ParseAddr(ip); err != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("podIP of task %s[%d] is %q, which is not an IP address", status.Name, index, ip)
			}
			role.ips = append(role.ips, ip)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// isRoleName checks what the CRD demands of a name, length apart.
func isRoleName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
