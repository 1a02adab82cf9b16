// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
)

const (
	kubernetes, apiserver, apimachinery = "k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/apimachinery"
	admission                           = "plugin/pkg/admission/"
)

// forbidding are the messages of Kubernetes' admission and authorization by which it matters that something is
// forbidden: the format, the file that has it, and what it is filled with.
var forbidding = []struct {
	module, file, format string
	args                 []any
	reason               string
	want                 Refusal
}{
	{apiserver, "pkg/admission/plugin/resourcequota/controller.go", "exceeded quota: %s, requested: %s, used: %s, limited: %s", []any{"q", "pods=1", "pods=3", "pods=3"}, ReasonQuotaExceeded, RefusedForNow},
	{apiserver, "pkg/admission/plugin/resourcequota/controller.go", "status unknown for quota: %s, resources: %s", []any{"q", "pods"}, ReasonCreationRefused, RefusedForNow},
	{apiserver, "pkg/admission/plugin/resourcequota/controller.go", "insufficient quota to consume: %v", []any{"cpu"}, ReasonCreationRefused, RefusedForNow},
	{apiserver, "pkg/admission/plugin/resourcequota/controller.go", "insufficient quota to match these scopes: %v", []any{"[{BestEffort Exists []}]"}, ReasonCreationRefused, RefusedForNow},
	{kubernetes, admission + "priority/admission.go", "no PriorityClass with name %v was found", []any{"high"}, ReasonPriorityClassNotFound, RefusedForNow},
	{kubernetes, admission + "gc/gc_admission.go", "cannot set an ownerRef on a resource you can't delete: %v, %v", []any{"", nil}, ReasonCreationRefused, RefusedForNow},
	{kubernetes, admission + "gc/gc_admission.go", "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %v", []any{"v1", "ConfigMap", "no match"}, ReasonCreationRefused, RefusedForNow},
	{kubernetes, admission + "gc/gc_admission.go", "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v", []any{"", nil}, ReasonCreationRefused, RefusedForNow},
	{kubernetes, admission + "serviceaccount/admission.go", "error looking up service account %s/%s: %v", []any{"ns", "a", `serviceaccount "a" not found`}, ReasonCreationRefused, RefusedForNow},
	{kubernetes, admission + "runtimeclass/admission.go", `pod rejected: RuntimeClass %q not found`, []any{"gvisor"}, ReasonCreationRefused, RefusedForNow},
	{kubernetes, admission + "runtimeclass/admission.go", "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead", nil, ReasonCreationRefused, RefusedByOthers},
	{kubernetes, admission + "limitranger/admission.go", "unable to %s %v at this time because there was an error enforcing limit ranges", []any{"CREATE", "pods"}, ReasonCreationRefused, RefusedForNow},
	{apiserver, "pkg/admission/plugin/namespace/lifecycle/admission.go", "not yet ready to handle request", nil, ReasonCreationRefused, RefusedForNow},
	{apiserver, "pkg/admission/plugin/webhook/generic/webhook.go", "not yet ready to handle request", nil, ReasonCreationRefused, RefusedForNow},
	{apiserver, "pkg/endpoints/handlers/responsewriters/errors.go", "User %q cannot %s resource %q in API group %q in the namespace %q", []any{"controller", "create", "pods", "", "ns"}, ReasonCreationRefused, RefusedForNow},
	{apiserver, "pkg/admission/plugin/policy/validating/dispatcher.go", "ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", []any{"quiet hours", "all", "not now"}, ReasonCreationRefused, RefusedByOthers},
	{apiserver, "pkg/admission/plugin/policy/generic/policy_dispatcher.go", "policy '%s' with binding '%s' denied request: %s", []any{"add a label", "all", "failed to configure binding"}, ReasonCreationRefused, RefusedByOthers},
}

func TestTheWordsAreThoseOfKubernetes(t *testing.T) {
	for _, tc := range forbidding {
		message := fmt.Sprintf(tc.format, tc.args...)
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(message))
		if got := RefusalOf(err); got != tc.want {
			t.Errorf("%v: the refusal is %d, want %d", err, got, tc.want)
		}
		if got := BlockReason(err); got != tc.reason {
			t.Errorf("%v: the reason is %s, want %s", err, got, tc.reason)
		}
		saysIn(t, tc.module, tc.file, tc.format)
	}
}

// TestOthersStillSayTheWords by which other places decide, as no code says it.
func TestOthersStillSayTheWords(t *testing.T) {
	const root = "../../../"
	for _, tc := range []struct{ words, ours, module, theirs string }{
		{"object provided is unrecognized", "controller/engine/plan/block.go", apiserver, "pkg/endpoints/handlers/rest.go"},
		{"request is too large", "controller/engine/status.go", "go.etcd.io/etcd/api/v3", "v3rpc/rpctypes/error.go"},
		{"trying to send message larger than max", "controller/engine/status.go", "google.golang.org/grpc", "stream.go"},
		{"namespace of the provided object does not match", "internal/unknownfields/unknownfields.go", apiserver, "pkg/registry/rest/meta.go"},
		{"strict decoding error", "internal/unknownfields/unknownfields.go", apimachinery, "pkg/runtime/error.go"},
		{"Preemption is not helpful for scheduling", "internal/why/why.go", kubernetes, "pkg/scheduler/framework/preemption/preemption.go"},
		{"No preemption victims found", "internal/why/why.go", kubernetes, "pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go"},
	} {
		ours, err := os.ReadFile(root + tc.ours)
		if err != nil || !strings.Contains(string(ours), tc.words) {
			t.Errorf("%s does not decide by %q any more (%v)", tc.ours, tc.words, err)
		}
		saysIn(t, tc.module, tc.theirs, tc.words)
	}
}

// saysIn has the test fail if a file of a module does not have the words.
func saysIn(t *testing.T, module, file, words string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("looking for the module %s: %v", module, err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
	if err != nil {
		t.Errorf("reading the source: %v", err)
	} else if !strings.Contains(string(source), words) {
		t.Errorf("%s of %s does not say %q any more", file, module, words)
	}
}

// TestADenialIsOneWhateverItsCode: that of a policy without a reason, of a webhook without a code, and with codes of wrong objects.
func TestADenialIsOneWhateverItsCode(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	policy := apierrors.NewForbidden(pods, "p", errors.New("ValidatingAdmissionPolicy 'quiet hours' with binding 'all' denied request: not now"))
	policy.ErrStatus.Reason, policy.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	// The API server says this of MutatingAdmissionPolicies, from Kubernetes 1.34 on.
	faulty := apierrors.NewForbidden(pods, "p", nil)
	faulty.ErrStatus.Reason = metav1.StatusReasonInvalid
	faulty.ErrStatus.Message = "policy 'add a label' with binding 'all' denied request: expression 'object.spec.none' resulted in error: no such key: none"
	ending := apierrors.NewForbidden(pods, "p", errors.New("unable to create new content in namespace ns because it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		err  error
		want Refusal
	}{
		"a policy without a reason":              {policy, RefusedByOthers},
		"a policy that fails to change a Pod":    {faulty, RefusedByOthers},
		"a webhook without a code":               {webhookerrors.ToStatusErr("w.example.com", nil), RefusedByOthers},
		"a webhook with the code of a wrong Pod": {webhookerrors.ToStatusErr("w.example.com", &metav1.Status{Message: "no", Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity}), RefusedByOthers},
		"a webhook that asks for patience":       {webhookerrors.ToStatusErr("w.example.com", &metav1.Status{Message: "later", Reason: metav1.StatusReasonTooManyRequests, Code: http.StatusTooManyRequests}), RefusedForNow},
		"a webhook that does not answer":         {apierrors.NewInternalError(errors.New(`failed calling webhook "w.example.com"`)), RefusedForNow},
		"Pod Security":                           {apierrors.NewForbidden(pods, "p", errors.New(`violates PodSecurity "restricted:latest"`)), RefusedByOthers},
		"a namespace that is being deleted":      {ending, RefusedForNow},
		"a proxy that forbids":                   {apierrors.NewGenericServerResponse(http.StatusForbidden, "post", pods, "", "<html>", 0, true), RefusedForNow},
		"a proxy that understands nothing":       {apierrors.NewGenericServerResponse(http.StatusBadRequest, "post", pods, "", "<html>", 0, true), RefusedForNow},
		"a proxy for which a Pod is too large":   {apierrors.NewGenericServerResponse(http.StatusRequestEntityTooLarge, "post", pods, "", "<html>", 0, true), RefusedAsWrong},
		"a wrong Pod":                            {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), RefusedAsWrong},
	} {
		if got := RefusalOf(tc.err); got != tc.want {
			t.Errorf("%s: the refusal is %d, want %d", name, got, tc.want)
		}
	}
}
