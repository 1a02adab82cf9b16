// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialect reads PodGroups. Several projects have a kind of that name, each with fields,
// labels and phases of its own: a PodGroup API, called a dialect in code. The package converts
// the PodGroup of any API to a Group: one value, in the scheduler's own words. The packages that
// decide read only Groups, so a new API is added here and nowhere else.
//
//	which gang a Pod names, and in which role    Links (links.go), Key.RoleOf (key.go)
//	the Group that an object stands for          FromOwn (own.go),
//	                                             FromNative (native.go), FromVolcano (volcano.go),
//	                                             FromSchedulerPlugins (schedulerplugins.go)
//	which Pods are a gang without an object      rules.go, ruling.go
//	which Pods have a PodGroup that
//	lockstep-controller makes for an owner       implicit.go
//	the status of an object of another API       Status (status.go)
//
// The package is pure: values in, values out. Package coscheduling watches the objects, and
// package status writes them.
package dialect
