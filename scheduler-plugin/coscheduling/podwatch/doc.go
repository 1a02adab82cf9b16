// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwatch makes one history of the Pods of gangs out of two watches.
//
// The first watch is kube-scheduler's own, of Pods that live: those that have neither
// succeeded nor failed. The second is of Pods that name a PodGroup and have ended, because
// a member that has succeeded counts towards its gang's minimum. Together they show each
// Pod once, where a watch of all members beside kube-scheduler's had each binding decoded
// and kept twice.
//
// # What can't be told from an event
//
// When a Pod stops living, the first watch says that it was deleted, and shows it as it was
// before, whether it has ended or was deleted: the API server has one event for both. And
// the two watches are not in step: what one shows now, the other may show later, or may
// have shown long ago, and either may have been broken meanwhile.
//
// # Rules
//
// A Pod is a UID. What has ended never lives again, unless etcd is restored.
//
//  1. What the watch of ended Pods shows has ended, whatever the other one shows: that
//     is behind.
//
//     If that has shown the Pod no more, and shows it again, etcd was restored: it lives.
//
//  2. What it shows no more is gone. If the other one shows it still, that is behind.
//
//  3. What the watch of living Pods shows no more and the other one does not show has ended
//     or is gone. If it had no place, that makes no difference: it is gone. If it had
//     one, it is missing: it stays what it was, until the watch of ended Pods shows it, or
//     the API server says that it is not among those that have ended. The question must have been
//     begun after the Pod was found missing, and be answered from the newest state.
//
//  4. Two Pods of one name do not exist at a time. If one that has ended has the name of
//     one that lives, it is missing, and asked about.
//
// So a member that completes never counts as lost, not even for a moment, in no order of
// events. A member that is deleted outright counts for as long as it takes to ask.
//
// # What the rules leave open
//
// A member that has ended counts until the watch of ended Pods shows that it is gone. If a
// new member, of another name, is shown before that, the gang may be placed as if both were there. The
// watches are milliseconds apart. Who deletes ended members and creates others in one go can
// hit that.
//
// # Start
//
// No resource versions are compared. What is started first matters, once: the watch of
// ended Pods is to begin with the state at that moment, after the watch of living Pods
// has. Then a Pod that ends between the two is in one of them.
//
// # Contract
//
// The package is pure: no client and no clock. Whoever feeds it says when to ask.
package podwatch
