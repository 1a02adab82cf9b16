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
//  5. A Pod that waits and is new in its gang arrives. Who of the gang has succeeded by then may have
//     gone before the other one was created, as the watch of ended Pods may be behind: it is missing, and
//     asked about soon. Who is missing already stays so when that watch shows it. An answer says who is
//     there only if nobody has arrived since the question was made; who it says is gone is gone.
//
//     Who leaves the watch of living Pods after the arrival was there: that is one stream. If the watch was broken in
//     between, it is none, and nothing is known of who was not seen before the arrival.
//
//     Some controllers delete none of their Pods that have succeeded where they create another one. An arrival of theirs has
//     nobody doubted whom they control: Jobs go on beside thousands that have succeeded. See
//     [podgroup.Keeper].
//
// So a member that completes never counts as lost, not even for a moment, in no order of
// events. A member that is deleted outright counts for as long as it takes to ask. And a Pod that waits is
// placed beside none that had gone before it came.
//
// # What the rules leave open
//
// Somebody else may delete Pods that have succeeded of a Job, or of a Framework, in the milliseconds in which its controller
// creates another one, or retries a task. The same is true of Pods whose owner references say so wrongly. Their own gang
// may have that one placed as if those were there.
//
// While somebody arrives during each question, whoever has ended is missing. The gangs say for how long that matters.
//
// # Start
//
// Pods with which the watch of living Pods begins do not arrive: who has ended is listed after them, so it was there.
// In which order the two are shown makes no difference.
//
// No resource versions are compared. What is started first matters, once: the watch of
// ended Pods is to begin with the state at that moment, after the watch of living Pods
// has. Then a Pod that ends between the two is in one of them.
//
// # Contract
//
// The package is pure: no client and no clock. Whoever feeds it says when to ask.
package podwatch
