// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coscheduling is the scheduler plugin Coscheduling: it places the
// members of a PodGroup in one step or not at all.
//
// # Contract
//
// No member of a group is bound unless, at that moment, the group's minimum can
// be bound with it, counting members that are placed already. A group that
// waits holds nothing but a reservation (package room). Reservations concern only gangs that are behind in the queue, whose
// order is total: so no two gangs can block each other. Pods that name no group are scheduled as by kube-scheduler, of which
// the plugin is a part. All code that leans on kube-scheduler's inside is in package kube.
//
// # From event to binding
//
// Attach puts all this together once (attach.go: attach). Then the way of a gang is this; follow it by "go to definition".
// `make walk` prints the files, and TestTheWalk holds this page to the code.
//
// A. An event changes what is known of a gang. Informers call A1 and A2, each on a goroutine of its own.
//
//  1. A PodGroup of any kind is read as one neutral Group (podgroups.go: kind.set, dialect/own.go: FromOwn), and the gang
//     takes it on (gangs/gangs.go: Gangs.SetGroup).
//  2. A Pod is found to name a gang (watch.go: watcher.setPod, dialect/links.go: Links.KeyOf) and is counted there as
//     waiting, placed or bound (gangs/gangs.go: Gangs.SetPod, gangs/transitions.go: gang.see, gangs/member.go: member.state).
//  3. The change is passed on (gangs/gangs.go: Gangs.changed): a gang that is complete enters the queue of gangs
//     (queue/queue.go: Queue.Enter), which is in the order of their ranks (queue/rank.go: Rank.Compare).
//  4. Anything else that happens in the cluster may help a gang that was refused: kube-scheduler's queue says so
//     (kube/queue.go: Queue.MoveAllToActiveOrBackoffQueue, events.go: happened), and the queue of gangs compares it with what
//     the gang needs (queue/need.go: Need.helps).
//
// B. A gang is woken. Members never wait in kube-scheduler's queue (kube/queue.go: Queue.Add).
//
//  5. A goroutine that each change wakes (wakeup.go: waker.tend) puts a placeholder Pod of the gang's priority into
//     kube-scheduler's queue (kube/wakeup.go: WakeUps.Put; why: ADR 25).
//  6. kube-scheduler pops the placeholder, on its only scheduling goroutine. The engine, which stands in front of Pop, takes
//     it and begins the cycles of the gangs that are due (engine.go: engine.nextEntity, engine.go: engine.runCycles,
//     gangs/turn.go: Cycles.Begin).
//
// C. The scheduling cycle decides (cycle.go: engine.runCycle has the table of outcomes). Nothing is written before D.
//
//  7. The gang and the cluster go in, an Outcome comes out (place/place.go: Place). Reservations of gangs ahead count as taken
//     (place/ahead.go: respect).
//  8. Members that need the same are one class; the Filter plugins look at each node once for each class
//     (place/world.go: attempt.survey, place/filters.go: filters.filter).
//  9. The planner, a pure function, packs all members, the tightest domain first (planner/plan.go: Plans, planner/pack.go: pack).
//  10. Plugins verify the plan member by member, with the members before assumed (place/verify.go: verification.follow). If no
//     plan holds, members are placed one by one (place/onebyone.go: oneByOne.place; why: ADR 67).
//  11. A gang without a place may have Pods of lower priority end, or, as the first that waits, a reservation in time
//     (place/seek.go: seeker.seek, victims/search.go: Search; why: ADR 68, ADR 74).
//
// D. The outcome is carried out (cycle.go: engine.apply).
//
//  12. Placed: the members are assumed in kube-scheduler's cache and by the gang, all or none (cycle.go: engine.commit,
//     gangs/turn.go: Cycles.Assume), and each is bound on a goroutine of its own (bind.go: binder.bind,
//     kube/binding.go: RunBindingCycle, binding.go: binding.write).
//  13. Refused: the gang backs off until an event may help it (gangs/turn.go: Cycles.Refuse, queue/turn.go: Queue.Refused).
//     Victims are evicted (evict.go: evictor.evict), and the reservation is recorded (reservations.go: keeper.become), which
//     ordinary Pods respect by the plugin's Filter (filter.go: Coscheduling.Filter).
//  14. Conditions, events and marks of Pods say what came of it (news/conditions.go: Gang.News, status/reporter.go: Reporter.tell).
//
// The binding comes back as an event of the Pod, at step 2.
package coscheduling
