// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/client-go/rest"
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
	// Group is the group of the actions that create these Pods.
	Group string
	// Path is the place in the owner, such as spec.taskRoles[0].task.pod.
	Path string
	// JSON is the template as written by the user.
	JSON []byte
}

// fieldChecker asks the API server which fields of templates it does not know (ADR 63). It asks while syncs go on, and
// only once for equal templates in a namespace. Nothing waits for the answers unless the configuration refuses unknown
// fields. Namespaces take turns.
type fieldChecker struct {
	pods   rest.Interface
	clock  clock.PassiveClock
	wake   func(fair.Key)
	refuse bool

	// queue has the owners that have questions.
	queue fair.Queue
	// asking joins concurrent questions about equal templates into one.
	asking singleflight.Group

	mu sync.Mutex
	// questions are the unanswered questions of each owner, from its last sync: at most one for each template.
	questions map[fair.Key][]checkedTemplate
	// answers has those of the templates that were looked at last.
	answers *lru.Cache
}

// digest identifies a template in a namespace.
type digest [sha256.Size]byte

// answer is what is known of a template.
type answer struct {
	// paths are those of the unknown fields, within the template.
	paths []string
	// sure says that the API server could answer, now or before.
	sure bool
	// `again` is when to ask again, because the API server could not answer or may be a newer version by then; zero for
	// never. tries counts the attempts without an answer.
	again time.Time
	tries int
}

const (
	// keptAnswers bounds the answers that are kept for owners to come.
	keptAnswers = 4096
	// askers is how many questions are asked at the same time.
	askers = 2
)

func newFieldChecker(pods rest.Interface, refuse bool, clock clock.WithTicker, wake func(fair.Key)) *fieldChecker {
	return &fieldChecker{
		pods: pods, clock: clock, wake: wake, refuse: refuse, queue: fair.NewQueue("", clock),
		questions: map[fair.Key][]checkedTemplate{}, answers: lru.New(keptAnswers),
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

// askNext asks the API server the next owner's first question. askNext returns false if there are no more questions.
func (f *fieldChecker) askNext(ctx context.Context) bool {
	owner, over := f.queue.Get()
	if over {
		return false
	}
	defer f.queue.Done(owner)
	question, ok := f.next(owner)
	if !ok {
		return true
	}
	found, err, _ := f.asking.Do(string(question.id[:]), func() (any, error) { return f.ask(ctx, owner.Namespace, question) })
	if err != nil {
		return false // The controller is stopped: that is no answer.
	}
	if found.(*answer).sure || f.refuse {
		f.wake(owner)
	}
	return true
}

// next takes the first question of an owner. If the owner has more questions, it is queued again.
func (f *fieldChecker) next(owner fair.Key) (question checkedTemplate, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	questions := f.questions[owner]
	switch len(questions) {
	case 0:
		return question, false
	case 1:
		delete(f.questions, owner)
	default:
		f.questions[owner] = questions[1:]
		f.queue.Add(owner)
	}
	return questions[0], true
}

// ask returns the answer to a question. If no answer is known, or the known one is old, it asks the API server; if that
// can't answer, it returns the old answer. The error is not nil if ctx has ended.
func (f *fieldChecker) ask(ctx context.Context, namespace string, question checkedTemplate) (*answer, error) {
	before := f.known(question)
	if !f.isDue(before) {
		return before, nil
	}
	request, cancel := context.WithTimeout(ctx, pacing.AskTime)
	defer cancel()
	paths, err := unknownfields.Of(request, f.pods, namespace, question.JSON)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	now := &answer{paths: paths, sure: err == nil}
	switch {
	case err != nil:
		klog.FromContext(ctx).V(4).Info("The API server does not say whether it knows all fields of a Pod template", "namespace", namespace, "err", err)
		if before != nil {
			*now = answer{paths: before.paths, sure: before.sure, tries: before.tries + 1}
		}
		now.again = f.clock.Now().Add(pacing.AskAgain(now.tries))
	case len(paths) > 0:
		now.again = f.clock.Now().Add(pacing.MaxAskAgain)
	}
	f.answers.Add(question.id, now)
	return now, nil
}

// known returns the last answer about a template, nil if none.
func (f *fieldChecker) known(t checkedTemplate) *answer {
	if kept, ok := f.answers.Get(t.id); ok {
		return kept.(*answer)
	}
	return t.answer
}

// isDue reports whether to ask the API server about a template, given the known answer, which may be nil.
func (f *fieldChecker) isDue(known *answer) bool {
	return known == nil || !known.again.IsZero() && !f.clock.Now().Before(known.again)
}

// check fills in the known answers for an owner's templates. For templates without an answer, or with an old one, it
// queues questions in place of the owner's earlier ones. Each answer causes a sync of the owner.
func (f *fieldChecker) check(owner fair.Key, templates []checkedTemplate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var questions []checkedTemplate
	for i := range templates {
		t := &templates[i]
		if t.answer = f.known(*t); f.isDue(t.answer) {
			questions = append(questions, *t)
		}
	}
	if len(questions) == 0 {
		delete(f.questions, owner)
		return
	}
	f.questions[owner] = questions
	f.queue.Add(owner)
}

// checkedTemplate is a template with the known answer, nil if there is none yet.
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

// templates returns the owner's templates from which Pods may still be created, each with the API server's answer about
// unknown fields, if there is one yet.
func (p *pass[O, S]) templates() []checkedTemplate {
	o, owner, m := p.owners, p.entry.owner, p.memory
	var templates []Template
	if owner.GetDeletionTimestamp() == nil {
		templates = o.core.Templates(owner, m.persisted)
	}
	if m.templates.generation != owner.GetGeneration() || len(m.templates.all) != len(templates) {
		m.templates = checkedTemplates{generation: owner.GetGeneration()}
		for _, template := range templates {
			m.templates.all = append(m.templates.all, checkedTemplate{
				Template: template, id: sha256.Sum256(slices.Concat([]byte(owner.GetNamespace()+"/"), template.JSON)),
			})
		}
	}
	o.fields.check(o.queued(p.key), m.templates.all)
	return m.templates.all
}

// unknownFields returns a message that names the fields of the owner's templates that the API server does not know.
// `known` is false, and the message empty, until the API server has answered for every template, so that one event
// reports all fields.
func (p *pass[O, S]) unknownFields() (message string, known bool) {
	templates, paths := p.templates(), []string(nil)
	known = len(templates) > 0
	for _, t := range templates {
		if t.answer == nil {
			return "", false
		}
		known = known && t.answer.sure
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

// withoutUnknownFields removes the creations of Pods from templates with unknown fields, if the configuration refuses
// such fields, and adds a Block that names the fields. It also removes the creations until the API server has answered,
// unless the API server was asked and can't answer.
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
