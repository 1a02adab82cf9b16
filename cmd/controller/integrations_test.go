// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
)

// TestWhatIsOffIsTold: an upgrade may lose the configuration, and then nobody runs the jobs of the
// integrations.
func TestWhatIsOffIsTold(t *testing.T) {
	var served []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range []string{volcanoCRDs, kubeflowCRDs} {
		crds, err := readCRDs(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			// Of Kubeflow's, the MPIJob alone, as in a cluster with the MPI operator.
			if pattern == kubeflowCRDs && crd.resource.Resource != "mpijobs" || crd.resource.Resource == "commands" {
				continue
			}
			object := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.object.Object, object); err != nil {
				t.Fatal(err)
			}
			for i := range object.Spec.Versions {
				if object.Spec.Versions[i].Storage {
					object.Spec.Versions[0] = object.Spec.Versions[i]
				}
			}
			served = append(served, object)
		}
	}
	all := serving(t, served)
	for name, tc := range map[string]struct {
		server  http.Handler
		volcano bool
		want    []string
	}{
		"a cluster with Volcano Jobs and MPIJobs": {server: all, want: []string{"kubeflowJobs.enabled", "volcanoJobs.enabled"}},
		"Volcano Jobs are switched on":            {server: all, volcano: true, want: []string{"kubeflowJobs.enabled"}},
		"a cluster without any":                   {server: http.NotFoundHandler()},
		"an API server that can't tell": {server: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			config := &configv1alpha1.ControllerConfiguration{}
			configv1alpha1.SetDefaults(config)
			config.VolcanoJobs.Enabled = &tc.volcano
			got, _ := servedButOff(integrationsOf(config), client)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what is off (-want,+got):\n%s", diff)
			}
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
			tellWhatIsOff(klog.NewContext(t.Context(), logger), config, client)
			log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if lines := strings.Count(log, "does not switch them on"); lines != min(1, len(tc.want)) {
				t.Errorf("%d lines of the log tell of it:\n%s", lines, log)
			}
		})
	}
}

// TestIntegrationsAreKnownByTheirKinds: all kinds of which Lockstep has a CRD are known.
func TestIntegrationsAreKnownByTheirKinds(t *testing.T) {
	config := &configv1alpha1.ControllerConfiguration{}
	configv1alpha1.SetDefaults(config)
	known := map[string][]string{}
	for _, f := range integrationsOf(config) {
		if f.on {
			t.Errorf("%s is on by default", f.key)
		}
		for version, kinds := range f.kinds {
			known[version] = kinds
		}
	}
	for _, pattern := range []string{volcanoCRDs, kubeflowCRDs} {
		crds, err := readCRDs(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			if crd.resource.Resource == "commands" { // They are of Jobs.
				continue
			}
			if !slices.Contains(known[crd.resource.GroupVersion().String()], crd.resource.Resource) {
				t.Errorf("%s are not known", crd.resource)
			}
		}
	}
}

func TestNothingIsServedWithoutTLSUnlessItIsAskedFor(t *testing.T) {
	var options servingOptions
	options.addFlags(pflag.NewFlagSet("", pflag.ContinueOnError))
	if options.healthAddress != "" || options.securePort != 8443 {
		t.Errorf("by default it serves at %q without TLS, and at port %d", options.healthAddress, options.securePort)
	}
}
