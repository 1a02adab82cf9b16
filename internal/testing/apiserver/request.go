// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Verb is what a request asks for.
type Verb string

// The verbs. Apply is a server-side apply; Patch are all other patches.
const (
	Get              Verb = "get"
	List             Verb = "list"
	Watch            Verb = "watch"
	Create           Verb = "create"
	Update           Verb = "update"
	Patch            Verb = "patch"
	Apply            Verb = "apply"
	Delete           Verb = "delete"
	DeleteCollection Verb = "deletecollection"
	// DryRun is a creation that changes nothing.
	DryRun Verb = "dryrun"
)

// Writes reports whether the verb may change an object.
func (v Verb) Writes() bool {
	return v != Get && v != List && v != Watch && v != DryRun
}

// Request is what a process asks for.
type Request struct {
	// Process is the name of the client.
	Process string
	Verb    Verb
	// Group is that of the resource, empty for Kubernetes' core.
	Group string
	// Resource is the last part of its name, such as "pods".
	Resource string
	// Subresource is "status" or the like, empty for the object itself.
	Subresource string
	Namespace   string
	// Name is the name of the object. It is empty for lists, for watches of several objects, and for creations that let
	// the server generate the name.
	Name string
	// Object is what a create or an update sends; nil for other requests. For Kubernetes' own resources it is the Go
	// type, for custom resources only the metadata. Hooks must not modify it.
	Object metav1.Object
	// Body is what was sent.
	Body []byte
	// InitialEvents means that a watch begins with all existing objects.
	InitialEvents bool
}

// String returns the request in a few words: "controller: update frameworks/status
// ns/train".
func (r *Request) String() string {
	what := r.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", r.Process, r.Verb, what, name))
}

// call is a Request with all that is needed to carry it out.
type call struct {
	Request
	ctx         context.Context
	process     *Process
	table       *table
	format      format
	contentType string
	values      url.Values
	query       query
	// object is what a create or an update sends.
	object objectOf
}

// objectOf decodes an object once.
type objectOf struct {
	revision *revision
	err      error
}

// query is what lists and watches select.
type query struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	resource  *resource

	version           uint64
	versionMatch      metav1.ResourceVersionMatch
	bookmarks         bool
	sendInitialEvents bool
	// anyVersion says that a state from before the request will do.
	anyVersion bool
}

// key returns the object that is asked for.
func (c *call) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// newCall reads a request.
func (p *Process) newCall(r *http.Request) (*call, error) {
	c := &call{Request: Request{Process: p.name}, ctx: r.Context(), process: p,
		contentType: r.Header.Get("Content-Type"), values: r.URL.Query()}
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if c.Body, err = io.ReadAll(r.Body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if err := c.readPath(p.server, r.URL.Path); err != nil {
		return nil, err
	}
	if err := c.readVerb(r.Method); err != nil {
		return nil, err
	}
	var err error
	if c.format, err = negotiate(r.Header.Get("Accept"), c.table.resource); err != nil {
		return nil, err
	}
	switch c.Verb {
	case List, Watch, DeleteCollection:
		return c, c.readQuery()
	case Create, DryRun, Update:
		c.readObject()
	}
	return c, nil
}

// readPath finds the resource and the name of the object.
func (c *call) readPath(s *Server, path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var id schema.GroupVersionResource
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		id.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		id.Group, id.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return errNoPage
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		c.Namespace, parts = parts[1], parts[2:]
	}
	id.Resource = parts[0]
	if len(parts) > 1 {
		c.Name = parts[1]
	}
	if len(parts) > 2 {
		c.Subresource = strings.Join(parts[2:], "/")
	}
	c.Group, c.Resource = id.Group, id.Resource
	c.table = s.tables[id]
	if c.table == nil || c.table.Cluster != (c.Namespace == "") && c.Name != "" {
		return errNoPage
	}
	switch {
	case c.Subresource == "", c.Subresource == "status" && !c.table.NoStatus, c.Subresource == "binding" && c.Resource == "pods":
		return nil
	}
	if c.table.custom {
		return apierrors.NewNotFound(c.table.GroupResource(), c.Name)
	}
	return errNoPage
}

// errNoPage is why nothing is at a path. It is answered in plain text.
var errNoPage = errors.New("404 page not found")

func (c *call) readVerb(method string) error {
	switch method {
	case http.MethodGet:
		watch, _ := strconv.ParseBool(c.values.Get("watch"))
		switch {
		case watch:
			c.Verb = Watch
		case c.Name == "":
			c.Verb = List
		default:
			c.Verb = Get
		}
	case http.MethodPost:
		c.Verb = Create
		if c.values.Get("dryRun") != "" {
			c.Verb = DryRun
		}
	case http.MethodPut:
		c.Verb = Update
	case http.MethodPatch:
		c.Verb = Patch
		if mediaType(c.contentType) == string(types.ApplyYAMLPatchType) {
			c.Verb = Apply
		}
	case http.MethodDelete:
		c.Verb = Delete
		if c.Name == "" {
			c.Verb = DeleteCollection
		}
	}
	if c.Verb == "" || c.Name == "" && (c.Verb == Update || c.Verb == Patch || c.Verb == Apply) ||
		c.Name != "" && c.Verb == Create && c.Subresource == "" {
		return apierrors.NewMethodNotSupported(c.table.GroupResource(), strings.ToLower(method))
	}
	return nil
}

// readObject decodes the object, so that hooks can see it before the request is
// carried out.
func (c *call) readObject() {
	if c.Subresource == "binding" {
		return
	}
	object, err := c.table.decode(c.contentType, c.Body)
	if err != nil {
		c.object.err = err
		return
	}
	c.object.revision = newRevision(object)
	if c.table.custom {
		c.Object = c.object.revision.meta
	} else {
		c.Object = object.(metav1.Object)
	}
	if c.Verb == Create {
		c.Name = c.Object.GetName()
	}
}

func (c *call) readQuery() error {
	q := query{namespace: c.Namespace, resource: c.table.resource, labels: labels.Everything(), fields: fields.Everything()}
	values := c.values
	var err error
	if text := values.Get("labelSelector"); text != "" {
		if q.labels, err = labels.Parse(text); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
		}
	}
	if text := values.Get("fieldSelector"); text != "" {
		if q.fields, err = fields.ParseSelector(text); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		for _, requirement := range q.fields.Requirements() {
			if !c.table.hasField(requirement.Field) {
				return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
			}
		}
	}
	if c.Name != "" { // A watch of one object by its path.
		q.fields = fields.AndSelectors(q.fields, fields.OneTermEqualSelector("metadata.name", c.Name))
	}
	version := values.Get("resourceVersion")
	q.versionMatch = metav1.ResourceVersionMatch(values.Get("resourceVersionMatch"))
	q.anyVersion = version != ""
	if version != "" {
		if q.version, err = strconv.ParseUint(version, 10, 64); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", version, err))
		}
	}
	q.bookmarks, _ = strconv.ParseBool(values.Get("allowWatchBookmarks"))
	q.sendInitialEvents, _ = strconv.ParseBool(values.Get("sendInitialEvents"))
	c.InitialEvents = q.sendInitialEvents
	c.query = q
	return nil
}

// sees reports whether an object is among those selected.
func (q *query) sees(r *revision) bool {
	return (q.namespace == "" || q.namespace == r.meta.Namespace) &&
		q.labels.Matches(labels.Set(r.meta.Labels)) &&
		(q.fields.Empty() || q.fields.Matches(fieldsOf(r)))
}
