// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine is what figures were measured on.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	// Memory in MiB, 0 if unknown.
	Memory int    `json:"memoryMiB"`
	OS     string `json:"os"`
	Go     string `json:"go"`
}

// thisMachine describes the machine as far as Linux tells.
func thisMachine() Machine {
	m := Machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(info), "MemTotal: %d kB", &kib); err == nil {
			m.Memory = kib / 1024
		}
	}
	return m
}

// String is the machine in a few words.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores of %s, %d GiB, %s, %s", m.Cores, m.CPU, (m.Memory+512)/1024, m.OS, m.Go)
}
