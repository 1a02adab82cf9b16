// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import "cmp"

// hostName returns the name of the machine that a Pod is to its containers.
func (b *builder) hostName(place int, index int32) string {
	task := &b.spec.Tasks[place]
	return cmp.Or(b.templates[place].Spec.Hostname, podName(b.job.Name, task.Name, index))
}

// host returns the name under which other Pods of the Job find a Pod.
func (b *builder) host(place int, index int32) string {
	return b.hostName(place, index) + "." + cmp.Or(b.templates[place].Spec.Subdomain, b.job.Name)
}

// hosts are those of the first Pods of a task.
func (b *builder) hosts(place int, number int32) []string {
	hosts := make([]string, number)
	for index := range hosts {
		hosts[index] = b.host(place, int32(index))
	}
	return hosts
}

// distinctHosts returns how many different host names the Pods of a task have: 1 if the template sets the host name,
// else the number of Pods.
func (b *builder) distinctHosts(place int) int32 {
	replicas := b.spec.Tasks[place].Replicas
	if b.templates[place].Spec.Hostname != "" {
		return min(replicas, 1)
	}
	return replicas
}

// bytesOf returns the total length of the names of a task's hosts. name returns the host name of an index; the names
// differ only in their digits.
func (b *builder) bytesOf(place int, name func(place int, index int32) string) int {
	number := int(b.distinctHosts(place))
	if number == 0 {
		return 0
	}
	return number*(len(name(place, 0))-1) + digitsBelow(number)
}

// digitsBelow returns how many digits the numbers from 0 to below n have together.
func digitsBelow(n int) int {
	digits := n
	for power := 10; power < n; power *= 10 {
		digits += n - power
	}
	return digits
}

// placeOf returns the position in the spec of the task with a name; -1 if there is none.
func (b *builder) placeOf(name string) int {
	for place := range b.spec.Tasks {
		if b.spec.Tasks[place].Name == name {
			return place
		}
	}
	return -1
}

// replicasOf returns the number of Pods of a task; 0 if there is no such task.
func (b *builder) replicasOf(name string) int32 {
	if place := b.placeOf(name); place >= 0 {
		return b.spec.Tasks[place].Replicas
	}
	return 0
}
