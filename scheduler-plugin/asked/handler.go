// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package asked

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/lockstep-k8s/lockstep/internal/quantity"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// The bounds of requests.
const (
	// maxBody is how many bytes a question may have.
	maxBody = 1 << 20
	// maxValues is how many objects, lists and elements of these it may have: each takes up to two kilobytes when it is read.
	maxValues = 20_000
	// maxName is how many characters the names in it may have.
	maxName = 253
	// maxWaiting is how many requests may wait for their turn.
	maxWaiting = 4
	// readTime is how long a question may take to come, waitTime how long it waits for its turn, and answerTime how long
	// a request takes in all.
	readTime   = 2 * time.Second
	waitTime   = 2 * time.Second
	answerTime = 10 * time.Second
)

// Handler answers questions. Make it with New.
type Handler struct {
	paths   *http.ServeMux
	picture func() (*whatif.Snapshot, error)
	asks    authorizer.UnconditionalAuthorizer
	// turn has an item while an answer is worked out, and present one for each request that is read, waits or is served.
	turn, present chan struct{}
	// readTime is that of the constant, but in tests.
	readTime time.Duration
}

// New makes a Handler. Picture is what the answers rest on, and an error while there is no answer; asks
// says what users may read.
func New(picture func() (*whatif.Snapshot, error), asks authorizer.UnconditionalAuthorizer) *Handler {
	h := &Handler{paths: http.NewServeMux(), picture: picture, asks: asks, turn: make(chan struct{}, 1), present: make(chan struct{}, 1+maxWaiting), readTime: readTime}
	h.paths.HandleFunc("GET /lockstep/v1/line", h.line)
	h.paths.HandleFunc("GET /lockstep/v1/why/{namespace}/{name}", h.why)
	h.paths.HandleFunc("POST /lockstep/v1/simulate", h.simulate)
	return h
}

// ServeHTTP answers a request of a user that is known.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	h.paths.ServeHTTP(w, r.WithContext(ctx))
}

// refusal is an answer that is none.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

// line answers who is next.
func (h *Handler) line(w http.ResponseWriter, r *http.Request) {
	only := r.URL.Query().Get("namespace")
	h.answer(w, r, func(a *asking) (any, error) {
		if only != "" && !a.may.podGroups(only) {
			return nil, forbidden("list", only)
		}
		var queue whatif.Queue
		if err := a.inTurn(func(s *whatif.Snapshot) error { queue = whatif.QueueOf(s); return nil }); err != nil {
			return nil, err
		}
		return queue.SeenBy(func(key dialect.Key) bool { return (only == "" || key.Namespace == only) && a.may.gangs(key) }), nil
	})
}

// why answers why a gang is not running.
func (h *Handler) why(w http.ResponseWriter, r *http.Request) {
	key := dialect.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	h.answer(w, r, func(a *asking) (any, error) {
		if !a.may.podGroup(key.Namespace, key.Name) {
			return nil, forbidden("get", key.Namespace)
		}
		seenBy := a.seer(key.Namespace)
		var answer answers.Why
		if err := a.inTurn(func(s *whatif.Snapshot) error { answer = whatif.Why(seenBy(s), key); return nil }); err != nil {
			return nil, err
		}
		if answer.Place != nil {
			whatif.Redact(answer.Place, a.may.ofAnswers())
		}
		return answer, nil
	})
}

// simulate answers where a gang would go.
func (h *Handler) simulate(w http.ResponseWriter, r *http.Request) {
	h.answer(w, r, func(a *asking) (any, error) {
		question, err := read(a.body)
		if err != nil {
			return nil, &refusal{http.StatusBadRequest, err.Error()}
		}
		if err := mayAsk(a.may, question); err != nil {
			return nil, err
		}
		seenBy := a.seer(question.Namespace)
		var answer answers.Simulation
		err = a.inTurn(func(s *whatif.Snapshot) error {
			var err error
			answer, err = whatif.Ask(seenBy(s), question)
			return err
		})
		var refused *refusal
		switch {
		case err == nil:
		case errors.As(err, &refused):
			return nil, err
		case errors.Is(err, whatif.ErrNotFound):
			return nil, &refusal{http.StatusNotFound, err.Error()}
		default:
			return nil, &refusal{http.StatusBadRequest, err.Error()}
		}
		whatif.Redact(&answer, a.may.ofAnswers())
		return answer, nil
	})
}

// read reads a question. The error says what is wrong with it.
func read(body []byte) (*answers.Question, error) {
	if values := text.CountSigns(body, "{[,"); values > maxValues {
		return nil, fmt.Errorf("a question has at most %d JSON values, and this one has %d", maxValues, values)
	}
	if err := quantity.CheckGang(body); err != nil {
		return nil, err
	}
	question := &answers.Question{}
	if err := json.Unmarshal(body, question); err != nil {
		return nil, fmt.Errorf("the question is no JSON of its kind: %w", err)
	}
	if question.Namespace == "" || question.Name == "" {
		return nil, errors.New("the question names no PodGroup: namespace and name are needed")
	}
	if len(question.Without) > answers.MaxChanges {
		return nil, fmt.Errorf("a question has at most %d changes of a kind", answers.MaxChanges)
	}
	if len(question.Namespace) > maxName || len(question.Name) > maxName {
		return nil, fmt.Errorf("a name has at most %d characters", maxName)
	}
	return question, nil
}

// mayAsk says whether a user may read what a question is about. A gang that is not there shows how
// much room there is, so it is for those who may have such a gang.
func mayAsk(may *rights, question *answers.Question) error {
	if question.Gang == nil && !may.podGroup(question.Namespace, question.Name) || question.Gang != nil && !may.podGroups(question.Namespace) {
		return forbidden("get", question.Namespace)
	}
	for _, name := range question.Without {
		if key := whatif.KeyOf(question.Namespace, name); !may.podGroups(key.Namespace) {
			return forbidden("list", key.Namespace)
		}
	}
	if len(question.AddNodes) > 0 && !may.nodes() {
		return &refusal{http.StatusForbidden, "you may not list nodes, so you can't add any that are like one"}
	}
	return nil
}

func forbidden(verb, namespace string) error {
	return &refusal{http.StatusForbidden, fmt.Sprintf("you may not %s podgroups.scheduling.lockstep.dev in namespace %q", verb, namespace)}
}

// asking is a request under way.
type asking struct {
	handler *Handler
	ctx     context.Context
	may     *rights
	// body is what a question has to say.
	body []byte
}

// seer makes of a picture what the asker may see of it who asks about a gang of a namespace, and waits for the answer.
func (a *asking) seer(namespace string) func(*whatif.Snapshot) *whatif.Snapshot {
	hidesNodes, hidesPods := !a.may.nodes(), !a.may.pods(namespace)
	return func(s *whatif.Snapshot) *whatif.Snapshot {
		seen := *s
		seen.HidesNodes, seen.HidesPods = hidesNodes, hidesPods
		seen.Over = func() bool { return a.ctx.Err() != nil }
		return &seen
	}
}

// inTurn works something out of the picture when it is the request's turn. Nothing is to be waited for in it: what the
// asker may read is asked before, or after.
func (a *asking) inTurn(work func(*whatif.Snapshot) error) error {
	if a.may.failed != nil {
		return a.may.refusal()
	}
	wait := time.NewTimer(waitTime)
	defer wait.Stop()
	select {
	case a.handler.turn <- struct{}{}:
	case <-wait.C:
		return errTooMany
	case <-a.ctx.Done():
		return errTooMany
	}
	defer func() { <-a.handler.turn }()
	s, err := a.handler.picture()
	if err != nil {
		return &refusal{http.StatusServiceUnavailable, err.Error()}
	}
	return work(s)
}

// errTooMany is told when others are in the way.
var errTooMany = &refusal{http.StatusTooManyRequests, "too many questions are asked"}

// answer works an answer out, and writes it. If that takes too long, nobody waits for it but the next one.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, work func(*asking) (any, error)) {
	ctx := r.Context()
	asker, known := request.UserFrom(ctx)
	if !known {
		refuse(w, &refusal{http.StatusUnauthorized, "the user is not known"})
		return
	}
	select {
	case h.present <- struct{}{}:
	default:
		refuse(w, errTooMany)
		return
	}
	leave := func() { <-h.present }
	a := &asking{handler: h, ctx: ctx, may: rightsOf(ctx, asker, h.asks)}
	if r.Method == http.MethodPost {
		var err error
		if a.body, err = h.bodyOf(w, r); err != nil {
			leave()
			refuse(w, err)
			return
		}
	}
	type result struct {
		answer any
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer leave()
		var found result
		defer func() {
			// A fault in an answer must not end the scheduler.
			if fault := recover(); fault != nil {
				found = result{err: &refusal{http.StatusInternalServerError, fmt.Sprint("the answer failed: ", fault)}}
			}
			done <- found
		}()
		if found.answer, found.err = work(a); a.may.failed != nil {
			found.err = a.may.refusal()
		}
	}()
	select {
	case found := <-done:
		if found.err != nil {
			refuse(w, found.err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found.answer) // the client may have gone
	case <-ctx.Done():
		refuse(w, &refusal{http.StatusGatewayTimeout, "the answer takes too long"})
	}
}

// bodyOf reads the body of a request, for a while: others may want its place.
func (h *Handler) bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(h.readTime)) // tests have what knows no deadline
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		// Else it stays: who has sent too little is not waited for when the refusal is sent, either.
		_ = connection.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &refusal{http.StatusRequestTimeout, "the question takes too long to come"}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("reading the question, of %d bytes at most: %v", maxBody, err)}
	}
	return body, nil
}

// refuse writes why there is no answer.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var why *refusal
	if errors.As(err, &why) {
		status = why.status
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, strings.TrimSpace(err.Error()), status)
}
