// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podend determines how a Pod ended: which component ended the Pod, and with which exit code. All kinds of
// jobs and the scheduler use it. It is pure.
//
// It reads these signs of Pods in Kubernetes 1.34 to 1.37:
//
//	metadata.deletionTimestamp       somebody asked the API server to delete the Pod
//	status.phase                     Succeeded or Failed, set by the kubelet or the garbage collector
//	status.reason                    why the kubelet made the Pod Failed (pkg/kubelet)
//	condition DisruptionTarget       why something outside of the Pod ended it, or is about to
//	status of each container         the exit code, or that the container never ran
package podend
