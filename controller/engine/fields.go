// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/unknownfields"
)

// Template is a Pod template of an owner.
type Template struct {
	// Group is that of the actions that create its Pods.
	Group string
	// Path is where the owner has it, such as spec.taskRoles[0].task.pod.
	Path string
	// JSON is the template as the user has written it.
	JSON []byte
}

// fieldChecker asks the API server which fields of templates it does not know (ADR 63). It asks beside the syncs, once
// for equal templates of a namespace, and nothing waits for it unless unknown fields are refused.
type fieldChecker struct {
	pods   rest.Interface
	clock  clock.PassiveClock
	wake   func(fair.Key)
	refuse bool

	queue workqueue.TypedInterface[digest]

	mu sync.Mutex
	// questions are those that wait for an answer.
	questions map[digest]*question
	// answers has those of the templates that were looked at last.
	answers *lru.Cache
}

// digest stands for a template in a namespace.
type digest [sha256.Size]byte

type question struct {
	namespace string
	template  []byte
	// before is the answer that there was, nil if there was none.
	before *answer
	// of are the owners that have asked.
	of map[fair.Key]bool
}

// answer is what is known of a template.
type answer struct {
	// paths are those of the unknown fields, within the template.
	paths []string
	// sure says that the API server could tell.
	sure bool
	// again is when it is asked again: it could not tell, or may have become a newer one. Zero if it need not be. tries are those in vain.
	again time.Time
	tries int
}

const (
	// keptAnswers bounds the answers that are kept for owners to come.
	keptAnswers = 4096
	// askers is how many questions are asked at the same time.
	askers = 2
)

func newFieldChecker(pods rest.Interface, refuse bool, clock clock.PassiveClock, wake func(fair.Key)) *fieldChecker {
	return &fieldChecker{
		pods: pods, clock: clock, wake: wake, refuse: refuse,
		queue:     workqueue.NewTyped[digest](),
		questions: map[digest]*question{}, answers: lru.New(keptAnswers),
	}
}

// run asks until ctx ends.
func (f *fieldChecker) run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	defer f.queue.ShutDown()
	for range askers {
		asking.Go(func() {
			for f.askNext(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// askNext asks the next question. It says whether there may be more.
func (f *fieldChecker) askNext(ctx context.Context) bool {
	next, over := f.queue.Get()
	if over {
		return false
	}
	defer f.queue.Done(next)
	f.mu.Lock()
	asked := f.questions[next]
	f.mu.Unlock()
	if asked == nil {
		return true
	}
	requests, cancel := context.WithTimeout(ctx, pacing.AskTime)
	defer cancel()
	paths, err := unknownfields.Of(requests, f.pods, asked.namespace, asked.template)
	if err != nil {
		klog.FromContext(ctx).V(4).Info("The API server does not say whether it knows all fields of a Pod template", "namespace", asked.namespace, "err", err)
	}
	if ctx.Err() != nil {
		return false // The controller is stopped: that is no answer.
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := &answer{paths: paths, sure: err == nil}
	switch {
	case err != nil:
		if last := asked.before; last != nil {
			now.paths, now.sure, now.tries = last.paths, last.sure, last.tries+1 // What it has said before holds.
		}
		now.again = f.clock.Now().Add(pacing.AskAgain(now.tries))
	case len(paths) > 0:
		now.again = f.clock.Now().Add(pacing.MaxAskAgain)
	}
	f.answers.Add(next, now)
	delete(f.questions, next)
	if now.sure || f.refuse {
		for key := range asked.of {
			f.wake(key)
		}
	}
	return true
}

// of returns what is known of a template. If nothing is, or it is to be asked for again, it is asked for, and the owner is woken when there is news. last
// is the answer that the owner had before.
func (f *fieldChecker) of(id digest, last *answer, namespace string, template []byte, owner fair.Key) *answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := last
	if kept, ok := f.answers.Get(id); ok {
		known = kept.(*answer)
	}
	if known != nil && (known.again.IsZero() || f.clock.Now().Before(known.again)) {
		return known
	}
	if f.questions[id] == nil {
		f.questions[id] = &question{namespace: namespace, template: template, before: known, of: map[fair.Key]bool{}}
		f.queue.Add(id)
	}
	f.questions[id].of[owner] = true
	return known
}

// checkedTemplate is a template, and what is known of it. The answer is nil as long as there is none.
type checkedTemplate struct {
	Template
	id     digest
	answer *answer
}

// checkedTemplates are the templates of an owner of a generation.
type checkedTemplates struct {
	generation int64
	all        []checkedTemplate
}

// templates are those of the owner from which Pods may still be made, with what is known of their fields.
func (p *pass[O, S]) templates() []checkedTemplate {
	o, owner, m := p.owners, p.entry.owner, p.memory
	if owner.GetDeletionTimestamp() != nil {
		return nil
	}
	templates := o.core.Templates(owner, m.persisted)
	if len(templates) == 0 {
		return nil
	}
	if m.templates.generation != owner.GetGeneration() || len(m.templates.all) != len(templates) {
		m.templates = checkedTemplates{generation: owner.GetGeneration()}
		for _, template := range templates {
			m.templates.all = append(m.templates.all, checkedTemplate{
				Template: template, id: sha256.Sum256(slices.Concat([]byte(owner.GetNamespace()+"/"), template.JSON)),
			})
		}
	}
	for i := range m.templates.all {
		t := &m.templates.all[i]
		t.answer = o.fields.of(t.id, t.answer, owner.GetNamespace(), t.JSON, fair.Key{Kind: o.resource.Kind, ObjectName: p.key})
	}
	return m.templates.all
}

// unknownFields names the fields of the owner's templates that the API server does not know; known says whether it
// has answered for all templates.
func (p *pass[O, S]) unknownFields() (message string, known bool) {
	templates, paths := p.templates(), []string(nil)
	known = len(templates) > 0
	for _, t := range templates {
		if t.answer == nil || !t.answer.sure {
			known = false
			continue
		}
		paths = append(paths, t.paths()...)
	}
	return unknownfields.Message(paths), known
}

// paths are those of the unknown fields, within the owner.
func (t *checkedTemplate) paths() []string {
	var paths []string
	for _, path := range t.answer.paths {
		paths = append(paths, t.Path+"."+path)
	}
	return paths
}

// withoutUnknownFields leaves out, where unknown fields are refused, the creations of Pods whose template has some: a block tells
// of them. Those of templates that were asked for wait for the answer, but not if there is none to be had.
func (p *pass[O, S]) withoutUnknownFields(actions []plan.Action) []plan.Action {
	creates := func(action plan.Action) bool { return action.Verb == plan.Create && action.Kind == kindOfPods }
	if !slices.ContainsFunc(actions, creates) || !p.owners.fields.refuse {
		return actions
	}
	templates := map[string]*checkedTemplate{}
	for _, t := range p.templates() {
		templates[t.Group] = &t
	}
	return slices.DeleteFunc(slices.Clone(actions), func(action plan.Action) bool {
		t, why := templates[action.Group], causesOf(action)[0]
		switch {
		case !creates(action):
			return false
		case t == nil, t.answer != nil && len(t.answer.paths) == 0:
			if p.memory.blocks[why].Reason == ReasonUnknownFields {
				p.unblock(why)
			}
			return false
		case t.answer == nil:
			return true
		}
		p.wakeAt(t.answer.again)
		message := "no Pods are created: " + unknownfields.Message(t.paths())
		if before := p.memory.blocks[why]; before.Reason != ReasonUnknownFields || before.Message != message {
			p.memory.blocks[why] = plan.Block{
				Verb: action.Verb, Kind: action.Kind, Group: action.Group, Name: action.Name, Reason: ReasonUnknownFields, Message: message,
			}
			p.blocksChanged = true
		}
		return true
	})
}

// kindOfPods is the name of the kind of Pods, for all cores.
const kindOfPods = "Pod"
