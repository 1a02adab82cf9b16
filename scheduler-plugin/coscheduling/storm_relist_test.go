// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

// breakWatch breaks the watch of some informer. It lists anew after a second or more.
func (s *storm) breakWatch() bool {
	kinds := s.wires.kinds()
	s.lock.Lock()
	kinds = append(kinds, s.groupWires.kinds()...)
	s.lock.Unlock()
	if len(kinds) == 0 {
		return false
	}
	kind := kinds[s.random.IntN(len(kinds))]
	s.logf("the watch of %s breaks", kind)
	if kind == groupResource.Resource {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.groupWires.cut(kind)
		return true
	}
	s.wires.cut(kind)
	return true
}

// makeAnew deletes a Pod and makes another one of its name.
func (s *storm) makeAnew() bool {
	p := pick(s, s.pods, func(p *stormPod) bool {
		g := s.groups[p.group]
		return !p.deleting && (g == nil || g.exists || !g.isRuled()) // or its Pods would bring it back
	})
	if p == nil {
		return false
	}
	s.logf("make %s anew", p.name)
	s.excuse(p.group)
	p.anew = true
	s.deletePodGracefully(p, 0)
	g := s.groups[p.group]
	s.addPod(&stormPod{name: p.name, group: p.group, role: p.role, cpu: p.cpu, priority: p.priority,
		serves: p.serves, daemon: p.daemon, wantsDevice: p.wantsDevice}, g != nil && g.never)
	return true
}

// makeGroupAnew deletes a PodGroup and makes another one of its name.
func (s *storm) makeGroupAnew() bool {
	g := pick(s, s.groups, func(g *stormGroup) bool { return g.exists && !g.isRuled() })
	if g == nil {
		return false
	}
	s.logf("make PodGroup %s anew", g.Name)
	s.removeGroup(g)
	g.exists = true
	s.createGroup(g)
	s.touch(g.Name)
	return true
}
