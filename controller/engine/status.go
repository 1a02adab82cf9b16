// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// maxConflicts limits how often a write of the status is repeated because another client has changed the owner in
// between.
const maxConflicts = 5

// persist writes the status, and then sends the events that waited for the write. persist reports whether the status
// was written. A write that fails is tried again later, and is no error of persist. persist returns an error only if
// the cache is behind (errCacheBehind), or if the status can't be encoded.
func (p *pass[O, S]) persist(ctx context.Context) (bool, error) {
	c, m := p.owners, p.memory
	begun := p.now()
	p.turn.requests++
	stored, err := p.writeStatus(ctx, p.whole)
	if isTooLarge(err) {
		stored, err = p.writeShortened(ctx, err)
	}
	switch {
	case errors.Is(err, errCacheBehind), errors.Is(err, errEncoding):
		return false, err
	case err != nil:
		p.pace.Refusals.Refused(statusWrite, p.now(), pauseOf(err), c.entropy.Between)
		untold := ReasonActionFailed
		if isTooLarge(err) {
			untold = "" // That is told by an event of its own.
		}
		p.tellFailures(ctx, []error{fmt.Errorf("writing the status: %w", err)}, untold)
		return false, nil
	}
	p.pace.Refusals.Granted(statusWrite)
	if m.complaint == complaintNotStored {
		m.complaint = "" // The next one is another one.
	}
	before, now := m.persisted, p.now()
	m.persisted, m.stored, m.sent, m.current = m.status, stored, nil, true
	c.metrics.count(c.resource.Kind, c.core.Turns(p.entry.owner, before, m.persisted, now))
	c.core.StatusWritten(p.entry.owner, before, m.persisted)
	c.states.set(p.key, c.core.State(m.persisted))
	p.pace.Writes.Written(begun, now)
	c.metrics.statusWriteSeconds.Observe(now.Sub(begun).Seconds())
	p.tell(ctx)
	return true, nil
}

// errCacheBehind means that the memory was made from an old state of the owner: since then, another controller has
// written the status, or a user has changed the spec, the labels or the annotations.
var errCacheBehind = errors.New("the status, spec or metadata is not the stored one")

// errEncoding says that a status can't be encoded: nothing was sent.
var errEncoding = errors.New("encoding the status")

// whole returns the status of the memory, with the encoding.
func (p *pass[O, S]) whole() (*S, []byte, error) {
	status := p.memory.status
	data, err := p.memory.decider.Encode(status)
	return status, data, err
}

// writeStatus replaces the stored status and returns the new one. The function `form` builds the status to store from
// the memory's status. On a conflict, writeStatus reads the owner again:
//
//   - If the stored status is not the last that this controller has written or read, or if the spec or metadata have
//     changed since the decision, it returns errCacheBehind.
//   - If the owner has not changed, the conflict counts as a refusal.
func (p *pass[O, S]) writeStatus(ctx context.Context, form func() (*S, []byte, error)) (*S, error) {
	for range maxConflicts {
		status, data, err := form()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errEncoding, err)
		}
		err = p.writeOnce(ctx, data)
		if err == nil {
			return status, nil
		}
		if !apierrors.IsConflict(err) {
			p.memory.noteSent(status, err)
			return nil, err
		}
		m, version := p.memory, p.version()
		p.owners.metrics.statusConflicts.Inc()
		if m.refused == version {
			return nil, err
		}
		switch current, err := p.checkStatus(ctx); {
		case err != nil:
			return nil, err
		case !current:
			return nil, errCacheBehind
		}
		if p.version() == version {
			m.refused = version
			return nil, err
		}
	}
	return nil, fmt.Errorf("the %s was changed by others %d times in a row", p.owners.resource.Kind, maxConflicts)
}

// checkStatus reads the owner from the API server. `current` reports that its spec, labels and annotations are those
// that the decision used, and that its status is the one in memory, apart from fields that other programs write
// (Core.WithOthers). If so, the memory takes over these fields and the resource version, and counts as current.
func (p *pass[O, S]) checkStatus(ctx context.Context) (current bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	p.turn.requests++
	live, err := p.owners.client.Read(ctx, p.key)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the %s: %w", p.owners.resource.Kind, err)
	case live.owner.GetUID() != p.entry.owner.GetUID():
		return false, nil
	case !asksTheSame(live.owner, p.entry.owner) && live.owner.GetDeletionTimestamp() == nil:
		return false, nil // Of an owner that is deleted, the spec does not matter, but that it is has to be known.
	}
	if !p.memory.takeIn(live.storedStatus, p.owners.core) {
		return false, nil
	}
	p.memory.current = true
	p.memory.resourceVersion = live.owner.GetResourceVersion()
	p.memory.noteDeletion(live.owner.GetDeletionTimestamp())
	return true, nil
}

// noteDeletion records that the owner is being deleted, as an answer of the API server has shown. The cache may not
// show it yet.
func (m *memory[O, S]) noteDeletion(at *metav1.Time) {
	if at != nil {
		m.deletionTimestamp = at
	}
}

// checkEntry compares the cached status with the written one, if the cached one is newer than the last write.
// checkEntry takes over fields that other programs write, and returns errCacheBehind if any other field differs.
func (p *pass[O, S]) checkEntry() error {
	m, version := p.memory, p.entry.owner.GetResourceVersion()
	if m.resourceVersion == version || m.checked == version || !atLeast(version, m.resourceVersion) {
		return nil
	}
	if !m.takeIn(p.entry.storedStatus, p.owners.core) {
		return errCacheBehind
	}
	m.checked = version
	return nil
}

// takeIn takes over fields that other programs write from a stored status. All other fields must be as in the status
// that the memory believes to be stored, or as in a status whose write seemed to fail. If they are not, or if the
// status can't be decoded, takeIn changes nothing and returns false.
func (m *memory[O, S]) takeIn(stored storedStatus, core Core[O, S]) bool {
	status, err := decodeStored(stored, core)
	if err != nil {
		return false
	}
	switch {
	case m.wrote(status, core):
		return true
	case status == nil || m.stored == nil || m.status == nil:
		return false
	}
	others := func(to *S) *S { return core.WithOthers(to, status) }
	if !m.keeps(others(m.stored), status, core) {
		return false
	}
	unwritten := m.status != m.persisted
	m.stored, m.persisted = others(m.stored), others(m.persisted)
	if unwritten {
		m.status = others(m.status)
	} else {
		m.status = m.persisted
	}
	return true
}

// wrote reports whether this controller has written a stored status: the last status that was written, or a status
// whose write returned an error although the API server stored it.
func (m *memory[O, S]) wrote(stored *S, core Core[O, S]) bool {
	return m.keeps(m.stored, stored, core) ||
		slices.ContainsFunc(m.sent, func(sent *S) bool { return m.keeps(sent, stored, core) })
}

// keeps reports whether `stored`, as read from the API server, is what the API server stores of `written`. If so, keeps
// also records whether the API server stores the whole status, unless `written` has no field that a CRD could drop.
func (m *memory[O, S]) keeps(written, stored *S, core Core[O, S]) bool {
	if written == nil || stored == nil {
		return written == stored
	}
	kept := core.Kept(written, stored)
	if !apiequality.Semantic.DeepEqual(stored, kept) {
		return false
	}
	differs := func(part *S) bool { return part != written && !apiequality.Semantic.DeepEqual(part, written) }
	switch {
	case differs(kept):
		m.kept = plan.KeptInPart
	case differs(core.Kept(written, new(S))):
		m.kept = plan.KeptWhole
	}
	return true
}

// maxSent limits how many statuses are remembered for which a write got no answer. Statuses of a Framework share the
// memory of their tasks.
const maxSent = 16

// noteSent remembers a status that could not be written, unless the error shows that nothing was stored.
func (m *memory[O, S]) noteSent(status *S, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) ||
		apierrors.IsTooManyRequests(err) || isTooLarge(err) || slices.Contains(m.sent, status) {
		return
	}
	m.sent = newest(append(m.sent, status), maxSent)
}

// writeOnce replaces the stored status. If another client has changed the owner since it was last read or written, the
// error is a conflict.
func (p *pass[O, S]) writeOnce(ctx context.Context, data []byte) error {
	c, m := p.owners, p.memory
	object, err := c.client.withStatus(p.entry.owner, p.version(), data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pacing.RequestTime)
	defer cancel()
	updated, err := c.client.UpdateStatus(ctx, p.key, object)
	if err != nil {
		return err
	}
	m.resourceVersion = updated.ResourceVersion
	m.noteDeletion(updated.DeletionTimestamp)
	c.metrics.statusWrites.Inc()
	c.metrics.statusWriteBytes.Add(float64(len(object)))
	c.metrics.statusBytes.Observe(float64(len(data)))
	return nil
}

// version returns the newest resource version of the owner that is known.
func (p *pass[O, S]) version() string {
	cached := p.entry.owner.GetResourceVersion()
	if atLeast(cached, p.memory.resourceVersion) {
		return cached
	}
	return p.memory.resourceVersion
}

// isTooLarge reports whether an error means that the object is too large for the API server or its storage.
func isTooLarge(err error) bool {
	if err == nil {
		return false
	}
	message := err.Error()
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(message, "request is too large") ||
		strings.Contains(message, "trying to send message larger than max")
}

// writeShortened writes a shorter status than the memory's, which the API server refused as too large, and sends an
// event that says so. If the core has no status that is small enough, writeShortened returns the refusal. Then only
// those actions wait that need the status.
func (p *pass[O, S]) writeShortened(ctx context.Context, refusal error) (*S, error) {
	p.owners.metrics.statusTooLarge.Inc()
	stored, err := p.writeStatus(ctx, p.shortened)
	switch {
	case errors.Is(err, errEncoding), isTooLarge(err):
		p.tellTooLarge(complaintNotStored, "it can't be shortened enough. The write is tried again, and nothing is started until the status is stored", refusal)
		if !isTooLarge(err) {
			refusal = fmt.Errorf("%w (%v)", refusal, err)
		}
		return nil, refusal
	case err == nil:
		p.tellTooLarge(ReasonStatusTooLarge, "its diagnostics are cut", refusal)
	}
	return stored, err
}

// tellTooLarge reports once that the status can't be stored whole, and what follows.
func (p *pass[O, S]) tellTooLarge(complaint, follows string, refusal error) {
	if p.memory.complaint == complaint {
		return
	}
	p.memory.complaint = complaint
	p.owners.events.Eventf(p.owners.reference(p.entry.owner), corev1.EventTypeWarning, ReasonStatusTooLarge,
		"The status is too large to be stored, %s: %v", follows, refusal)
}

// shortened returns a shorter status than the memory's, which stays whole.
func (p *pass[O, S]) shortened() (*S, []byte, error) {
	return p.memory.decider.Shorten(p.entry.owner, p.memory.status, p.now())
}

// tell sends the events that waited for the status to be written. It limits how many it sends for each reason.
func (p *pass[O, S]) tell(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, event := range p.memory.events {
		message, told := p.memory.telling.admit(event, p.now())
		if !told {
			logger.V(4).Info(p.owners.resource.Kind+" changed", "reason", event.Reason, "message", event.Message)
			continue
		}
		logger.V(2).Info(p.owners.resource.Kind+" changed", "reason", event.Reason, "message", message)
		eventType := corev1.EventTypeNormal
		if event.Warning {
			eventType = corev1.EventTypeWarning
		}
		p.owners.events.Event(p.owners.reference(p.entry.owner), eventType, event.Reason, message)
	}
	p.memory.events = nil
}

// Reasons of events that are not decisions.
const (
	// ReasonUndecodable: the object can't be read, so nothing is done for it.
	ReasonUndecodable = "Undecodable"
	// ReasonStatusTooLarge: the status is stored without its
	// diagnostics, or can't be stored at all.
	ReasonStatusTooLarge = "StatusTooLarge"
	// ReasonActionFailed: a request to the API server has failed, and is tried again.
	ReasonActionFailed = "ActionFailed"
	// ReasonUnknownFields: a Pod template has fields that the API server does not know, such as mistyped ones. The
	// fields are dropped, or no Pods are created, as the controller is configured.
	ReasonUnknownFields = "UnknownFields"
	// ReasonPanicked: a fault of Lockstep has ended a sync of this object. The sync is tried again later; please report
	// this.
	ReasonPanicked = "Panicked"
)

// complaintNotStored is the reason of the event that says that the status can't be stored in any form.
const complaintNotStored = "StatusNotStored"

// reference names an owner in events.
func (o *Owners[O, S]) reference(owner O) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion:      o.resource.GroupVersion().String(),
		Kind:            o.resource.Kind,
		Namespace:       owner.GetNamespace(),
		Name:            owner.GetName(),
		UID:             owner.GetUID(),
		ResourceVersion: owner.GetResourceVersion(),
	}
}
