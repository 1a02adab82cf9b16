// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coscheduling is the scheduler plugin Coscheduling. The plugin places the members of a PodGroup in one step,
// or none of them.
//
// # Contract
//
//   - No member of a gang is bound unless, at that moment, the gang's minimum can be bound. Members with a place count
//     towards the minimum.
//   - A waiting gang holds nothing but a reservation (package room). A reservation keeps room only from work behind the
//     gang in the queue, and the order of the queue is total. So no two gangs can block each other.
//   - Pods that name no PodGroup are scheduled as by kube-scheduler, which the plugin is compiled into. All code that
//     depends on internals of kube-scheduler is in package kube.
//
// # From event to binding
//
// Attach connects the parts once (attach.go: attach). After that, each gang goes through the steps below. To follow
// them, use your editor's "go to definition". `make walk` prints the files. TestTheWalk checks that the named functions
// exist.
//
// A. An event changes what is known of a gang. Informers call 1 and 2, each on its own goroutine.
//
//  1. A PodGroup of any API is read as a Group (podgroups.go: kind.set, dialect/own.go: FromOwn), and recorded in its
//     gang (gangs/gangs.go: Gangs.SetGroup).
//  2. The gang that a Pod names is found (watch.go: watcher.setPod, dialect/links.go: Links.KeyOf). The gang adds or
//     updates the Pod (gangs/gangs.go: Gangs.SetPod, gangs/transitions.go: gang.add, gangs/transitions.go: gang.see),
//     and counts the Pod as waiting, placed or bound (gangs/gang.go: gang.count, gangs/member.go: member.state).
//  3. The change is passed on (gangs/gangs.go: Gangs.changed). A complete gang enters the queue of gangs
//     (queue/queue.go: Queue.Enter), which is ordered by rank (queue/rank.go: Rank.Compare). What other parts have to
//     do is collected (gangs/due.go: Follower.Take); the goroutine of step 5 carries it out (wakeup.go:
//     waker.carryOut).
//  4. Any other event in the cluster may help a refused gang. The wrapper around kube-scheduler's queue gets every
//     event (kube/queue.go: PodQueue.MoveAllToActiveOrBackoffQueue). Events that help no gang are dropped (events.go:
//     heard, events.go: happened). The queue of gangs compares all others with what each refused gang needs
//     (gangs/changes.go: Gangs.Happened, queue/queue.go: Queue.Happened, queue/need.go: Need.helps). A refused gang
//     also has a cycle at the time that its last cycle named, and after a time without a helpful event
//     (queue/queue.go: Queue.tick).
//
// B. A gang is woken. Members never wait in kube-scheduler's queue (kube/queue.go: PodQueue.Add).
//
//  5. After each change, a goroutine (wakeup.go: waker.tend) asks which gang is due (gangs/cycles.go: Cycles.Next), and
//     puts a placeholder Pod with the gang's priority into kube-scheduler's queue (kube/wakeup.go: WakeUps.Put; why:
//     ADR 25).
//  6. kube-scheduler pops the placeholder on its only scheduling goroutine. The engine, which replaces Pop, takes the
//     placeholder (engine.go: engine.nextEntity, kube/wakeup.go: WakeUps.Take), and begins the cycles of the gangs that
//     are due (engine.go: engine.runCycles, gangs/cycles.go: Cycles.Begin).
//
// C. The scheduling cycle decides (cycle.go: engine.runCycle has the table of outcomes). No Pod is bound or evicted
// before D.
//
//  7. If a gang of the same shape was refused just before, this gang is refused, too (gangs/cycles.go: Cycles.RefuseAlike).
//     Otherwise the gang and the cluster go into package place, and an Outcome comes out (cycle.go: engine.decide,
//     place/place.go: Place). Reservations of gangs ahead count as used (place/ahead.go: respect).
//  8. Members with the same needs form one class. The Filter plugins look at each node once per class; for the next
//     similar gang, only at nodes that have changed (place/world.go: attempt.survey, place/filters.go: filters.filter).
//  9. The planner, a pure function, packs all members, into the tightest domain first (planner/plan.go: Plans,
//     planner/pack.go: pack).
//  10. Plugins verify a plan member by member, with the earlier members assumed (place/prefer.go: attempt.realize,
//     place/verify.go: verification.follow). If no plan holds, or members prefer to be near other Pods, the members are
//     placed one by one (place/onebyone.go: oneByOne.place; why: ADR 67).
//  11. For a gang without a place, place looks for Pods of lower priority to preempt or, if the gang is the first that
//     waits, for a reservation in time (place/seek.go: seeker.seek, victims/search.go: Search; why: ADR 68, ADR 74).
//  12. The members with a place are assumed in kube-scheduler's cache and in the gang, all or none, if the gang has not
//     changed since the cycle began (cycle.go: engine.commit, cycle.go: engine.assume, gangs/cycles.go: Cycles.Assume).
//
// D. The outcome is carried out (cycle.go: engine.apply).
//
//  13. The outcome's reservation replaces the gang's earlier one (reservations.go: keeper.become). The plugin's Filter
//     keeps ordinary Pods out of the reserved room (filter.go: Coscheduling.Filter). Victims are evicted (evict.go:
//     evictor.evict); their end is an event of step 2 or 4. A gang that lost too many members to preemption is evicted
//     as a whole (gangs/gangs.go: noticeBroken, evict.go: evictor.dissolve).
//  14. A gang without a place is refused, and backs off until an event may help (cycle.go: engine.refuse,
//     gangs/cycles.go: Cycles.Refuse, queue/cycle.go: Queue.Refused).
//  15. Each assumed member is bound on its own goroutine (bind.go: binder.bind, kube/binding.go: RunBindingCycle,
//     binding.go: binding.write). The binding comes back as an event of the Pod, at step 2. If a binding fails, the
//     member is no longer assumed, and the gang backs off (gangs/cycles.go: Cycles.Unassume).
//  16. Conditions, events and marks of Pods report the result (news/conditions.go: Gang.News, status/reporter.go:
//     Reporter.tell).
//
// # A new leader
//
// A standby replica does A only, so that all gangs are known when it becomes the leader. It leads from the first call
// of engine.nextEntity on (watch.go: watcher.start, gangs/gangs.go: Gangs.SetSynced). Then all gangs begin
// (gangs/gangs.go: Gangs.begin): if some members of a gang are bound, the others are planned as at step 7; the rest of
// a gang that was broken by preemption is evicted. Reservations are not stored: a waiting gang gets a new one.
//
// # The life of a reservation in time
//
//  1. The first gang of the queue may get one if its run time is known or the gang has waited for a minute (cycle.go:
//     engine.prepare, room/intime.go: MayBegin).
//  2. The reservation covers the room that running work will have left by a certain time (room/intime.go: NewInTime).
//     Each cycle of the gang renews the reservation, as the expected ends change (room/intime.go: Reservation.Renewed).
//     The plugins are asked about other nodes only if packing shows that the gang would have its room there notably
//     earlier (place/seek.go: seeker.findInTime, room/intime.go: Reservation.IsWorseThan).
//  3. The reservation ends when the gang no longer waits (reservations.go: keeper.prune), or when nodes that no other
//     work may use were idle for too long, for this gang (room/intime.go: Reservation.MayHold) or for all gangs together
//     (room/idle.go: Idle.Charge).
package coscheduling
