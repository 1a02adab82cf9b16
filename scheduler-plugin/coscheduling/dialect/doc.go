// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialect reads PodGroups. Several projects have a kind of that name, each with fields,
// labels and phases of its own. A dialect is one of these kinds. What the scheduler knows of a
// group, of whatever dialect, is a Group: one value, in the scheduler's own words. The packages
// that decide read nothing else, so a dialect is added here and nowhere else.
//
//	which gang a Pod names, and in which role    Links (links.go), Key.RoleOf (key.go)
//	the Group that an object stands for          FromOwn (own.go),
//	                                             FromNative (native.go), FromVolcano (volcano.go),
//	                                             FromSchedulerPlugins (schedulerplugins.go)
//	which Pods are a gang without an object      rules.go, ruling.go
//	which have one that lockstep-controller
//	makes for their owner                        implicit.go
//	what the status of a foreign object says     Status (status.go)
//
// The package is pure: values in, values out. Who watches the objects, and who writes what is
// told of them, is package coscheduling and package status.
package dialect
