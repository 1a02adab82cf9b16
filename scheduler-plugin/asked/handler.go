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
	// waitTime is how long they wait, and answerTime how long a request takes in all.
	waitTime   = 2 * time.Second
	answerTime = 10 * time.Second
)

// Handler answers questions. Make it with New.
type Handler struct {
	paths   *http.ServeMux
	picture func() (*whatif.Snapshot, error)
	asks    authorizer.UnconditionalAuthorizer
	// turn has an item while an answer is worked out, and present one for each request that waits or is served.
	turn, present chan struct{}
}

// New makes a Handler. Picture is what the answers rest on, and an error while there is no answer; asks
// says what users may read.
func New(picture func() (*whatif.Snapshot, error), asks authorizer.UnconditionalAuthorizer) *Handler {
	h := &Handler{paths: http.NewServeMux(), picture: picture, asks: asks, turn: make(chan struct{}, 1), present: make(chan struct{}, 1+maxWaiting)}
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
	h.answer(w, r, func(may *rights) (any, error) {
		if only != "" && !may.podGroups(only) {
			return nil, forbidden("list", only)
		}
		s, err := h.snapshot()
		if err != nil {
			return nil, err
		}
		return whatif.Order(s, func(namespace string) bool { return (only == "" || namespace == only) && may.podGroups(namespace) }), nil
	})
}

// why answers why a gang is not running.
func (h *Handler) why(w http.ResponseWriter, r *http.Request) {
	key := dialect.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	h.answer(w, r, func(may *rights) (any, error) {
		if !may.podGroup(key.Namespace, key.Name) {
			return nil, forbidden("get", key.Namespace)
		}
		s, err := h.snapshot()
		if err != nil {
			return nil, err
		}
		answer := whatif.Why(seenBy(s, may), key)
		if answer.Place != nil {
			whatif.Redact(answer.Place, may.ofAnswers())
		}
		return answer, nil
	})
}

// simulate answers where a gang would go.
func (h *Handler) simulate(w http.ResponseWriter, r *http.Request) {
	question, err := read(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, &refusal{http.StatusBadRequest, err.Error()})
		return
	}
	h.answer(w, r, func(may *rights) (any, error) {
		if err := mayAsk(may, question); err != nil {
			return nil, err
		}
		s, err := h.snapshot()
		if err != nil {
			return nil, err
		}
		answer, err := whatif.Ask(seenBy(s, may), question)
		switch {
		case errors.Is(err, whatif.ErrNotFound):
			return nil, &refusal{http.StatusNotFound, err.Error()}
		case err != nil:
			return nil, &refusal{http.StatusBadRequest, err.Error()}
		}
		whatif.Redact(&answer, may.ofAnswers())
		return answer, nil
	})
}

// read reads a question. The error says what is wrong with it.
func read(from io.Reader) (*answers.Question, error) {
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("reading the question, of %d bytes at most: %w", maxBody, err)
	}
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

// seenBy is a picture as somebody may see it who waits for the answer.
func seenBy(s *whatif.Snapshot, may *rights) *whatif.Snapshot {
	seen := *s
	seen.HidesNodes = !may.nodes()
	seen.Over = func() bool { return may.ctx.Err() != nil }
	return &seen
}

// snapshot is the picture, or a refusal.
func (h *Handler) snapshot() (*whatif.Snapshot, error) {
	s, err := h.picture()
	if err != nil {
		return nil, &refusal{http.StatusServiceUnavailable, err.Error()}
	}
	return s, nil
}

// answer works an answer out when it is its turn, and writes it. If that takes too long, nobody waits for it
// but the next one.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, work func(*rights) (any, error)) {
	ctx := r.Context()
	asker, known := request.UserFrom(ctx)
	if !known {
		refuse(w, &refusal{http.StatusUnauthorized, "the user is not known"})
		return
	}
	if !h.enter(ctx) {
		w.Header().Set("Retry-After", "1")
		refuse(w, &refusal{http.StatusTooManyRequests, "too many questions are asked"})
		return
	}
	type result struct {
		answer any
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer h.leave()
		var found result
		defer func() {
			// A fault in an answer must not end the scheduler.
			if fault := recover(); fault != nil {
				found = result{err: &refusal{http.StatusInternalServerError, fmt.Sprint("the answer failed: ", fault)}}
			}
			done <- found
		}()
		found.answer, found.err = work(rightsOf(ctx, asker, h.asks))
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

// enter waits for a request's turn, for a while. It says whether it has it: then it is to leave.
func (h *Handler) enter(ctx context.Context) bool {
	select {
	case h.present <- struct{}{}:
	default:
		return false
	}
	wait := time.NewTimer(waitTime)
	defer wait.Stop()
	select {
	case h.turn <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	<-h.present
	return false
}

func (h *Handler) leave() {
	<-h.turn
	<-h.present
}

// refuse writes why there is no answer.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var why *refusal
	if errors.As(err, &why) {
		status = why.status
	}
	http.Error(w, strings.TrimSpace(err.Error()), status)
}
