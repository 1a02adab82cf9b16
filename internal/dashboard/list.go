// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/view"
)

// jobsOfPage is how many jobs a page of the list has.
const jobsOfPage = 100

// allNamespaces means all namespaces in an address.
const allNamespaces = "*"

// jobList is what the list shows.
type jobList struct {
	Namespace string
	// State, Text and Kind are the filters: empty filters let all pass.
	State, Text, Kind string
	States, Kinds     []string
	// Sort is the order of the rows. Orders has the name of each order, with a link to the list in that order.
	Sort   string
	Orders map[string]string
	// Counts are the numbers of jobs by state, in this namespace. States without jobs are left out.
	Counts []stateCount
	Rows   []view.Row
	// Found is how many pass the filters, Total how many there are.
	Found, Total int
	pages
}

type stateCount struct {
	State string
	Count int
	Link  string
}

// pages has the links to the previous and the next page, each empty if there is no such page.
type pages struct{ Previous, Next string }

// list returns the page of all jobs.
func (s *Server) list(_ context.Context, r request) (*opened, error) {
	query := r.URL.Query()
	namespace, err := namespaceOf(r)
	if err != nil {
		return nil, err
	}
	from, err := number(query, "from", 0, 1<<30)
	if err != nil {
		return nil, err
	}
	if by := query.Get("sort"); !view.Sort(nil, by) {
		return nil, &badRequest{"sort", by, "one of " + strings.Join(view.Orders(), ", ")}
	}
	return &opened{make: func(ctx context.Context) (*page, error) {
		of := namespace
		if of == allNamespaces {
			of = metav1.NamespaceAll
		}
		jobs, err := r.visitor.Reader.Rows(ctx, of, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		list := filtered(jobs.Rows, query, namespace)
		list.Sort, list.Orders = query.Get("sort"), ordersOf(r.URL)
		view.Sort(list.Rows, list.Sort)
		from := onLastPage(from, jobsOfPage, list.Found)
		list.pages = pagesOf(r.URL, from, jobsOfPage, list.Found)
		list.Rows = list.Rows[from:min(from+jobsOfPage, list.Found)]
		return &page{Title: "Jobs", Tab: "jobs", Template: "list", Content: list, Unread: jobs.Unread, Namespace: namespace, Own: ownOfAll(r, namespace)}, nil
	}}, nil
}

// ordersOf returns the links to the first page of a list in each order.
func ordersOf(at *url.URL) map[string]string {
	links := make(map[string]string)
	for _, order := range view.Orders() {
		query := at.Query()
		query.Set("sort", order)
		query.Del("from")
		links[order] = at.Path + "?" + query.Encode()
	}
	return links
}

// filtered returns the rows that the filters of a query let pass.
func filtered(rows []view.Row, query url.Values, namespace string) *jobList {
	list := &jobList{Namespace: namespace, State: query.Get("state"), Text: query.Get("text"), Kind: query.Get("kind"), Total: len(rows)}
	counts, wanted := map[string]int{}, strings.ToLower(list.Text)
	for _, row := range rows {
		counts[row.State]++
		if !slices.Contains(list.Kinds, row.Kind) {
			list.Kinds = append(list.Kinds, row.Kind)
		}
		if list.State != "" && row.State != list.State || list.Kind != "" && row.Kind != list.Kind ||
			!strings.Contains(strings.ToLower(row.Namespace+"/"+row.Name), wanted) {
			continue
		}
		list.Rows = append(list.Rows, row)
	}
	slices.Sort(list.Kinds)
	list.States = view.States()
	for state := range counts {
		if !slices.Contains(list.States, state) {
			list.States = append(list.States, state)
		}
	}
	slices.Sort(list.States[len(view.States()):])
	for _, state := range list.States {
		if counts[state] > 0 {
			list.Counts = append(list.Counts, stateCount{state, counts[state], "/?" + url.Values{"namespace": {namespace}, "state": {state}}.Encode()})
		}
	}
	list.Found = len(list.Rows)
	return list
}

// namespaceOf returns the namespace that a request asks for, or that of the visitor.
func namespaceOf(r request) (string, error) {
	namespace := r.URL.Query().Get("namespace")
	if len(namespace) > 63 {
		return "", &badRequest{"namespace", namespace[:63] + "…", "a name of at most 63 characters, or *"}
	}
	if namespace == "" {
		return r.visitor.Namespace, nil
	}
	return namespace, nil
}

// own returns the namespace to read if the visitor requests all namespaces and may not read all: the namespace of the
// page that he saw last.
func own(r request, namespace string) string {
	if namespace == allNamespaces {
		return cmp.Or(r.URL.Query().Get("own"), r.visitor.Namespace)
	}
	return namespace
}

// ownOfAll returns what own is of all namespaces, and empty of another one.
func ownOfAll(r request, namespace string) string {
	if namespace == allNamespaces {
		return own(r, namespace)
	}
	return ""
}

// number returns a numeric parameter from 0, or the default.
func number(query url.Values, name string, otherwise, most int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, &badRequest{name, text, "a whole number from 0 to " + strconv.Itoa(most)}
	}
	return n, nil
}

// onLastPage returns the index of a page's first row. If rows have disappeared and the page would be empty, it is that
// of the last page with rows.
func onLastPage(from, size, all int) int {
	if from < all {
		return from
	}
	return max(0, (all-1)/size*size)
}

// pagesOf returns the links from a page that begins with a row.
func pagesOf(at *url.URL, from, size, all int) pages {
	link := func(from int) string {
		query := at.Query()
		query.Set("from", strconv.Itoa(from))
		return at.Path + "?" + query.Encode()
	}
	var p pages
	if from > 0 {
		p.Previous = link(max(0, from-size))
	}
	if from+size < all {
		p.Next = link(from + size)
	}
	return p
}
