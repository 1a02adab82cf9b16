// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/reading"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestAFrameworkIsMadeAnewThoughTheAnswerToItsDeletionGotLost: the deletion may have been stored, and what is deleted
// does not come back. Where it was refused, the Framework stays.
func TestAFrameworkIsMadeAnewThoughTheAnswerToItsDeletionGotLost(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, tc := range map[string]struct {
		fault  apiserver.Fault
		renews bool
	}{
		"the answer is lost": {apiserver.Fault{LoseAnswer: true}, true},
		"it is refused":      {apiserver.Fault{Refusal: apiserver.Unavailable()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := apiserver.New(t)
			old := &frameworkv1.Framework{}
			old.Namespace, old.Name = "a", "train"
			old = apiserver.Add(api, old)
			deleted := false
			api.SetHook(func(r *apiserver.Request) apiserver.Fault {
				switch {
				case r.Verb == apiserver.Delete:
					deleted = true
					return tc.fault
				case deleted && (r.Verb == apiserver.List || r.Verb == apiserver.Watch):
					// As the garbage collector does, once nothing is left of what it owns.
					deleted = false
					apiserver.Remove[frameworkv1.Framework](api, "a", "train")
				}
				return apiserver.Fault{}
			})
			config := api.Config()
			reader, err := reading.New(config)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			w := &write{session: newSession(nil, &out, &out), dryRun: "none"}
			err = w.again(t.Context(), &cluster{namespace: "a", config: config, reader: reader}, old)
			now, found := reader.Framework(t.Context(), "a", "train")
			if found != nil {
				t.Fatalf("the Framework is lost: %v, %v\n%s", found, err, out.String())
			}
			if renewed := now.UID != old.UID; renewed != tc.renews || (err == nil) != tc.renews {
				t.Errorf("made anew: %t, want %t (%v)", renewed, tc.renews, err)
			}
		})
	}
}

// TestAFrameworkIsMadeAnewThroughWhatPasses: once it is deleted, nothing but retry has it still.
func TestAFrameworkIsMadeAnewThroughWhatPasses(t *testing.T) {
	unavailable, lost := apiserver.Fault{Refusal: apiserver.Unavailable()}, apiserver.Fault{LoseAnswer: true}
	for name, tc := range map[string]struct {
		verb  apiserver.Verb
		fault apiserver.Fault
		// times is how often it happens, from the deletion on.
		times int
	}{
		"the look after the deletion is refused":                        {apiserver.Get, unavailable, 1},
		"its connection breaks":                                         {apiserver.Get, apiserver.Fault{Refusal: apiserver.ConnectionLost()}, 1},
		"its creation is refused for a while":                           {apiserver.Create, unavailable, 5},
		"the answer to the creation is lost":                            {apiserver.Create, lost, 1},
		"the credentials are renewed by the refusal of its creation":    {apiserver.Create, apiserver.Fault{Refusal: unauthorized}, 1},
		"the API server does not answer its creation":                   {apiserver.Create, apiserver.Fault{Before: time.Hour}, 1},
		"the API server carries its creation out, and answers too late": {apiserver.Create, apiserver.Fault{After: time.Hour}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := someone(t)
				old := u.has(frameworkv1.FrameworkCompleted, 1)
				deleted, left := false, tc.times
				u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Verb == apiserver.Delete && !deleted {
						deleted = true
						time.AfterFunc(time.Minute, func() { apiserver.Remove[frameworkv1.Framework](u.api, "a", "train") })
					}
					if deleted && r.Verb == tc.verb && left > 0 {
						left--
						return tc.fault
					}
					return apiserver.Fault{}
				})
				said := u.types("retry", "train")
				u.sees(said, 0, "framework/train recreated")
				if strings.Contains(said.err, "kind: Framework") {
					t.Errorf("it says: %s", said.err)
				}
				if now := apiserver.Find[frameworkv1.Framework](u.api, "a", "train"); now == nil || now.UID == old.UID {
					t.Error("it was not recreated")
				}
				time.Sleep(2 * time.Hour) // No request outlives the test.
			})
		})
	}
}

// TestWhatIsNotMadeAnewIsPrinted, with what is known of it.
func TestWhatIsNotMadeAnewIsPrinted(t *testing.T) {
	for name, tc := range map[string]struct {
		verb apiserver.Verb
		with error
		says string
	}{
		"its creation is refused":              {apiserver.Create, forbidden, "train was deleted, and not recreated"},
		"nobody answers its creation":          {apiserver.Create, apiserver.ConnectionLost(), "train was deleted, and whether it was recreated is not known"},
		"whether it was deleted can't be told": {apiserver.Delete, apiserver.ConnectionLost(), "train may have been deleted, and was not recreated"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := someone(t)
				u.has(frameworkv1.FrameworkCompleted, 1)
				deleted := false
				u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
					if r.Verb == apiserver.Delete {
						deleted = true
						time.AfterFunc(time.Minute, func() { apiserver.Remove[frameworkv1.Framework](u.api, "a", "train") })
					}
					if deleted && (r.Verb == tc.verb || tc.verb == apiserver.Delete) {
						return apiserver.Fault{Refusal: tc.with}
					}
					return apiserver.Fault{}
				})
				begun := time.Now()
				said := u.types("retry", "train")
				if said.code == 0 {
					t.Error("it says that all is well")
				}
				u.sees(said, said.code, tc.says, "kind: Framework")
				if took := time.Since(begun); took > 2*patience {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestTheManifestIsKeptIfAnotherFrameworkTakesTheName: the answer to the deletion is lost, and before retry looks, another
// client creates a Framework with the same name. The manifest of the deleted Framework is nowhere else.
func TestTheManifestIsKeptIfAnotherFrameworkTakesTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := someone(t)
		u.has(frameworkv1.FrameworkCompleted, 1)
		deleted := false
		u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
			switch {
			case r.Verb == apiserver.Delete:
				deleted = true
				return apiserver.Fault{LoseAnswer: true}
			case deleted && r.Verb == apiserver.Get:
				deleted = false
				apiserver.Remove[frameworkv1.Framework](u.api, "a", "train")
				other := &frameworkv1.Framework{}
				other.Namespace, other.Name = "a", "train"
				apiserver.Add(u.api, other)
			}
			return apiserver.Fault{}
		})
		said := u.types("retry", "train")
		u.sees(said, 1, "train was deleted, and not recreated", "kind: Framework")
		if kept := manifests(t); len(kept) != 1 {
			t.Errorf("kept are %v, and the manifest of the deleted Framework should be", kept)
		}
	})
}

// manifests are the files that a retry keeps Frameworks in.
func manifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestARetryThatIsKilledLosesNothing: from before the deletion until it is made anew, a Framework is in a file that is told.
func TestARetryThatIsKilledLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		// deletion is what becomes of it, and interrupted says that the program ends after it.
		deletion    apiserver.Fault
		interrupted bool
		stays       bool // the file
		says        []string
	}{
		"it is made anew":         {says: []string{"framework/train recreated"}},
		"it could not be deleted": {deletion: apiserver.Fault{Refusal: forbidden}},
		"it is interrupted": {interrupted: true, stays: true,
			says: []string{"train was deleted, and not recreated", "`kubectl create -f "}},
	} {
		t.Run(name, func(t *testing.T) {
			u := someone(t)
			old := u.has(frameworkv1.FrameworkCompleted, 1)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var before []string
			var content []byte
			deleted := false
			u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
				switch {
				case r.Verb == apiserver.Delete:
					deleted = true
					if before = manifests(t); len(before) == 1 {
						content, _ = os.ReadFile(before[0])
						if info, err := os.Stat(before[0]); err != nil || info.Mode().Perm() != 0o600 {
							t.Errorf("the file is %v (%v)", info, err)
						}
					}
					return tc.deletion
				case deleted && r.Verb != apiserver.Create && tc.interrupted:
					interrupt()
				case deleted && r.Verb != apiserver.Create && tc.deletion.Refusal == nil:
					deleted = false
					apiserver.Remove[frameworkv1.Framework](u.api, "a", "train")
				}
				return apiserver.Fault{}
			})
			said := u.typesUntil(ctx, "retry", "train")
			u.sees(said, said.code, tc.says...)
			var kept frameworkv1.Framework
			if err := yaml.UnmarshalStrict(content, &kept); err != nil || kept.Name != "train" || kept.Namespace != "a" || len(kept.Spec.TaskRoles) != len(old.Spec.TaskRoles) {
				t.Errorf("before the deletion there were %v, with (%v)\n%s", before, err, content)
			}
			if len(before) == 1 && !strings.Contains(said.err, before[0]) {
				t.Errorf("it does not tell %s: %s", before[0], said.err)
			}
			if left := manifests(t); (len(left) == 1) != tc.stays || len(left) > 1 {
				t.Errorf("left are %v, want that it stays: %t", left, tc.stays)
			}
			if !tc.stays {
				return
			}
			// Whoever comes back later, and finds no Framework, is told of it.
			u.api.SetHook(nil)
			apiserver.Remove[frameworkv1.Framework](u.api, "a", "train")
			u.sees(u.types("retry", "train", "--context="), 3, "An earlier retry has kept train", before[0])
			if first, _, _ := strings.Cut(string(content), "\n"); !strings.HasPrefix(first, "# For the API server \"http") {
				t.Errorf("the file begins with %q", first)
			}
		})
	}
}

// TestAFolderThatCannotBeWrittenIsPassedOver: one that root has made, such as with sudo.
func TestAFolderThatCannotBeWrittenIsPassedOver(t *testing.T) {
	u := someone(t)
	u.has(frameworkv1.FrameworkCompleted, 1)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "/dev/null")
	deleted := false
	u.api.SetHook(func(r *apiserver.Request) apiserver.Fault {
		switch {
		case r.Verb == apiserver.Delete:
			deleted = true
			if files, _ := filepath.Glob(filepath.Join(os.TempDir(), "lockstep_a_train_*.yaml")); len(files) != 1 {
				t.Errorf("before the deletion there are %v", files)
			}
		case deleted:
			deleted = false
			apiserver.Remove[frameworkv1.Framework](u.api, "a", "train")
		}
		return apiserver.Fault{}
	})
	u.sees(u.types("retry", "train"), 0, "framework/train recreated")
}

// TestTheCommandThatMakesItAnewAsksTheSameAPIServer.
func TestTheCommandThatMakesItAnewAsksTheSameAPIServer(t *testing.T) {
	s := newSession(nil, nil, nil)
	production, file := "production", "/etc/my config"
	s.flags.Context, s.flags.KubeConfig = &production, &file
	if got, want := s.creating("/tmp/x.yaml"), "`kubectl create -f \"/tmp/x.yaml\" --kubeconfig=\"/etc/my config\" --context=\"production\"`"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

// TestWhatCannotBeKeptIsNotDeleted, but stays as it was.
func TestWhatCannotBeKeptIsNotDeleted(t *testing.T) {
	u := someone(t)
	old := u.has(frameworkv1.FrameworkCompleted, 1)
	for _, name := range []string{"XDG_CACHE_HOME", "TMPDIR"} {
		t.Setenv(name, "/dev/null")
	}
	u.sees(u.types("retry", "train"), 1, "its manifest could not be written to a file, so it was not deleted")
	if now := apiserver.Find[frameworkv1.Framework](u.api, "a", "train"); now == nil || now.UID != old.UID {
		t.Error("it was deleted")
	}
	u.sees(u.types("retry", "train", "--dry-run=server"), 0, "recreated (server dry run)")
}

// TestRetryPromisesNoRetryThatNeverComes: what is being stopped has no other attempt, and what waits for one needs no
// help. The hint leads out.
func TestRetryPromisesNoRetryThatNeverComes(t *testing.T) {
	u := someone(t)
	fw := u.has(frameworkv1.FrameworkAttemptRunning, 1)
	change := func(change func(*frameworkv1.Framework)) { apiserver.Change(u.api, "a", "train", change) }
	uid := types.UID("of-the-configmap")
	change(func(fw *frameworkv1.Framework) {
		fw.Status.AttemptStatus.ConfigMapName, fw.Status.AttemptStatus.ConfigMapUID = "train-attempt", &uid
	})
	u.sees(u.types("retry", "train"), 1, "has no retry left", "`stop train`, `wait train --for=Completed`, then `retry train`")
	change(func(fw *frameworkv1.Framework) { fw.Spec.RetryPolicy.MaxRetryCount = -1 })
	u.sees(u.types("retry", "train", "--dry-run"), 0, "attempt 1 ended, to be retried")
	u.sees(u.types("stop", "train"), 0, "framework/train stopped")
	u.sees(u.types("retry", "train", "--dry-run"), 1, "train is being stopped", "`wait train --for=Completed`, then `retry train`")
	change(func(fw *frameworkv1.Framework) {
		fw.Spec.ExecutionType, fw.Status.State = frameworkv1.ExecutionStart, frameworkv1.FrameworkAttemptCompleted
	})
	u.sees(u.types("retry", "train"), 1, "is already waiting for its next attempt; the delay can't be skipped")
	if apiserver.Find[frameworkv1.Framework](u.api, "a", "train").UID != fw.UID {
		t.Error("it was made anew")
	}
}

// TestARetryWaitsInItsQueue: what Kueue has admitted was the old Framework.
func TestARetryWaitsInItsQueue(t *testing.T) {
	old := &frameworkv1.Framework{}
	old.Namespace, old.Name, old.Labels = "a", "train", map[string]string{frameworkv1.LabelQueue: "queue"}
	old.Annotations = map[string]string{frameworkv1.AnnotationAdmission: `{"workload": "w"}`, "note": "kept"}
	if anew := renewed(old); len(anew.Annotations) != 1 || anew.Annotations["note"] != "kept" || anew.Labels[frameworkv1.LabelQueue] != "queue" {
		t.Errorf("the new one has the annotations %v and the labels %v", anew.Annotations, anew.Labels)
	}
}
