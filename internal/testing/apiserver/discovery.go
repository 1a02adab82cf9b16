// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discovered answers a discovery request for the resources of a group and version. discovered returns false for any
// other request.
func (s *Server) discovered(r *http.Request) (answer, bool) {
	version, ok := strings.CutPrefix(r.URL.Path, "/apis/")
	if !s.discovers || !ok || r.Method != http.MethodGet || strings.Count(version, "/") != 1 {
		return answer{}, false
	}
	asked, err := schema.ParseGroupVersion(version)
	if err != nil {
		return answer{}, false
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, t := range s.tables {
		if of.GroupVersion() != asked {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: of.Resource, Kind: t.Kind, Namespaced: !t.Cluster})
		if !t.NoStatus {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: of.Resource + "/status", Kind: t.Kind, Namespaced: !t.Cluster})
		}
	}
	if len(list.APIResources) == 0 {
		return answer{}, false
	}
	a, err := encodeAnswer(http.StatusOK, list, asJSON)
	return a, err == nil
}
