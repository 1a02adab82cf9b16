// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// sharing has a job ask for a Service that its Pods share, before anything of it was seen.
func sharing(w *world) *world { return w.wishServices(string(kubeflowv1.ServicesPerJob)) }

// wishServices writes the annotation of a job.
func (w *world) wishServices(mode string) *world {
	w.Edit(func(j *Job) { j.Annotations = map[string]string{KeyServices: mode} })
	return w
}

// TestPodsOfAJobMayShareAService, in which each has its host name.
func TestPodsOfAJobMayShareAService(t *testing.T) {
	w := sharing(given(t, `{tfReplicaSpecs: {Worker: {replicas: 2, @t}, PS: {template: {spec: {hostname: mine, setHostnameAsFQDN: true, containers: [{name: tensorflow, image: i, ports: [
		{name: tfjob-port, containerPort: 5000}, {name: http, containerPort: 80}]}]}}}}}`))
	w.OnPlan = func(seen *view, p plan.Plan[status]) {
		for _, a := range p.Actions {
			if a.Kind == KindPod && a.Verb == plan.Create && seen.Objects[jobworld.Key{Kind: KindService, Name: "j-tfjob"}] == nil {
				t.Errorf("%s before the Service", a)
			}
		}
	}
	w.run().has(KindService, "j-tfjob").has(KindPod, "j-ps-0", "j-worker-0", "j-worker-1").says("Created Running")
	service := w.service("j-tfjob")
	if spec := service.Spec; spec.ClusterIP != corev1.ClusterIPNone || !spec.PublishNotReadyAddresses || len(spec.Ports) != 2 ||
		spec.Ports[0].Name != "tfjob-port" || spec.Ports[1].Port != 80 {
		t.Errorf("the Service is %+v", spec)
	}
	for _, name := range w.OwnPods() {
		pod := w.Pod(name)
		if pod.Spec.Hostname != name || pod.Spec.Subdomain != service.Name {
			t.Errorf("Pod %s has the name %s.%s", name, pod.Spec.Hostname, pod.Spec.Subdomain)
		}
		if pod.Spec.SetHostnameAsFQDN != nil {
			t.Errorf("Pod %s does not start if its full name has more than 64 characters", name)
		}
		for key, value := range service.Spec.Selector {
			if pod.Labels[key] != value {
				t.Errorf("the Service selects %s=%s, which Pod %s lacks", key, value, name)
			}
		}
	}
	const want = `{"cluster":{"ps":["j-ps-0.j-tfjob.n.svc:5000"],"worker":["j-worker-0.j-tfjob.n.svc:2222","j-worker-1.j-tfjob.n.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}`
	if got, _ := w.env("j-worker-1", 0, "TF_CONFIG"); got != want {
		t.Errorf("TF_CONFIG is %s, want %s", got, want)
	}
}

// TestWhoSharesAServiceIsToldItsNames, with the domain of the cluster.
func TestWhoSharesAServiceIsToldItsNames(t *testing.T) {
	tests := map[string]struct {
		job            func(*testing.T) *world
		pod, env, want string
	}{
		"the master of PyTorch": {func(t *testing.T) *world { return givenTorch(t, torch("1", "", "")) }, "j-worker-0", "MASTER_ADDR", "j-master-0.j-pytorchjob.n.svc.c.l"},
		"where elastic workers meet": {func(t *testing.T) *world {
			return givenTorch(t, "{elasticPolicy: {}, pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}")
		}, "j-worker-1", "PET_RDZV_ENDPOINT", "j-worker-0.j-pytorchjob.n.svc.c.l:23456"},
		"the elastic worker where they meet, by its host name, or it would not know that it is meant": {func(t *testing.T) *world {
			return givenTorch(t, "{elasticPolicy: {}, pytorchReplicaSpecs: {Worker: {replicas: 2, @t}}}")
		}, "j-worker-0", "PET_RDZV_ENDPOINT", "j-worker-0:23456"},
		"the elastic worker where they meet, on the network of its node": {func(t *testing.T) *world {
			return givenTorch(t, "{elasticPolicy: {}, pytorchReplicaSpecs: {Worker: {template: {spec: {hostNetwork: true, containers: [{name: pytorch, image: i}]}}}}}")
		}, "j-worker-0", "PET_RDZV_ENDPOINT", "j-worker-0.j-pytorchjob.n.svc.c.l:23456"},
		"elastic workers that meet elsewhere": {func(t *testing.T) *world {
			return givenTorch(t, "{elasticPolicy: {rdzvHost: h}, pytorchReplicaSpecs: {Worker: {@t}}}")
		}, "j-worker-0", "PET_RDZV_ENDPOINT", "h:23456"},
		"the workers of XGBoost": {func(t *testing.T) *world {
			return givenXGBoost(t, "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 2, @t}}}")
		}, "j-worker-0", "WORKER_ADDRS", "j-worker-0.j-xgboostjob.n.svc.c.l,j-worker-1.j-xgboostjob.n.svc.c.l"},
		"the master of XGBoost":         {func(t *testing.T) *world { return givenXGBoost(t, "{xgbReplicaSpecs: {Master: {replicas: 1, @t}}}") }, "j-master-0", "MASTER_ADDR", "j-master-0.j-xgboostjob.n.svc.c.l"},
		"where the Pods of Paddle meet": {func(t *testing.T) *world { return givenPaddle(t, "{paddleReplicaSpecs: {Worker: {replicas: 2, @t}}}") }, "j-worker-1", "PADDLE_MASTER", "j-worker-0.j-paddlejob.n.svc.c.l:36543"},
		"the coordinator of JAX":        {func(t *testing.T) *world { return givenJAX(t, "{jaxReplicaSpecs: {Worker: {replicas: 2, @t}}}") }, "j-worker-1", "COORDINATOR_ADDRESS", "j-worker-0.j-jaxjob.n.svc.c.l"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := sharing(tc.job(t))
			w.core.options.ClusterDomain = "c.l"
			if got, _ := w.settle().env(tc.pod, 0, tc.env); got != tc.want {
				t.Errorf("%s is %s, want %s", tc.env, got, tc.want)
			}
		})
	}
	t.Run("who waits for the master looks up that name, too", func(t *testing.T) {
		pod := sharing(givenTorch(t, torch("1", "", ""))).settle().Pod("j-worker-0")
		if args := pod.Spec.InitContainers[0].Args; !slices.Contains(args, "j-master-0.j-pytorchjob.n.svc") {
			t.Errorf("the arguments are %q", args)
		}
	})
}

// TestWhichServicesAJobHas: its annotation counts, or else the option. Kinds that are designed otherwise
// stay as they are.
func TestWhichServicesAJobHas(t *testing.T) {
	const mpi = "{mpiReplicaSpecs: {Launcher: {replicas: 1, @t}, Worker: {replicas: 1, @t}}}"
	tests := map[string]struct {
		job        func(*testing.T, string) *world
		spec       string
		option     kubeflowv1.ServiceMode
		annotation string
		want       []string
		warnings   int
	}{
		"neither says anything":                   {job: given, want: []string{"j-worker-0"}},
		"the option":                              {job: given, option: kubeflowv1.ServicesPerJob, want: []string{"j-tfjob"}},
		"the annotation":                          {job: given, annotation: "PerJob", want: []string{"j-tfjob"}},
		"the annotation goes before the option":   {job: given, option: kubeflowv1.ServicesPerJob, annotation: "PerReplica", want: []string{"j-worker-0"}},
		"an annotation that nobody knows":         {job: given, annotation: "perjob", want: []string{"j-worker-0"}, warnings: 1},
		"an empty annotation":                     {job: given, option: kubeflowv1.ServicesPerJob, annotation: " ", want: []string{"j-tfjob"}, warnings: 1},
		"a TFJob of v1alpha2 with the option":     {job: givenDesigned, option: kubeflowv1.ServicesPerJob, want: []string{"j-worker-1-u"}},
		"a TFJob of v1alpha2 with the annotation": {job: givenDesigned, annotation: "PerJob", want: []string{"j-worker-1-u"}, warnings: 1},
		"an MPIJob with the option":               {job: givenMPI, spec: mpi, option: kubeflowv1.ServicesPerJob, want: []string{"j"}},
		"an MPIJob with the annotation":           {job: givenMPI, spec: mpi, annotation: "PerReplica", want: []string{"j"}, warnings: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.spec == "" {
				tc.spec = "{tfReplicaSpecs: {Worker: {@t}}}"
			}
			w := tc.job(t, tc.spec)
			w.core.options.Services = tc.option
			if tc.annotation != "" {
				w.wishServices(tc.annotation)
			}
			names := w.settle().Names(KindService)
			for i := range names {
				names[i] = strings.ReplaceAll(names[i], shortUID(w.Owner.UID), "u")
			}
			if !slices.Equal(names, tc.want) || w.told("InvalidAnnotation") != tc.warnings {
				t.Errorf("Services %v, want %v; events %v", names, tc.want, w.Events)
			}
			if tc.warnings > 0 && tc.job(t, tc.spec).told("InvalidAnnotation") != 0 {
				t.Error("a job without the annotation is warned")
			}
		})
	}
}

// TestAJobKeepsItsServicesUntilItsNextStart, whatever is written meanwhile, and whoever runs it: its Pods
// were told of names.
func TestAJobKeepsItsServicesUntilItsNextStart(t *testing.T) {
	crds := map[string]func(*status) *status{
		"with the CRD of Lockstep": nil,
		"with another's":           func(s *status) *status { return Kept(s, &status{}) },
		"with one of a Lockstep that knew nothing of it": func(s *status) *status {
			kept := *s
			kept.Services = ""
			return &kept
		},
	}
	for name, cut := range crds {
		t.Run(name, func(t *testing.T) {
			w := given(t, withPolicy("suspend: false", "replicas: 2"))
			if cut != nil {
				w.core.options.ForeignCRDs, w.ForeignCRD, w.Cut = true, true, cut
			}
			replaced := func(services ...string) {
				t.Helper()
				for range 2 {
					w.Remove(KindPod, "j-worker-1")
					w.run().has(KindService, services...)
					if a, b := w.Pod("j-worker-0").Spec.Subdomain, w.Pod("j-worker-1").Spec.Subdomain; a != b {
						t.Errorf("one Pod has the subdomain %q, the next %q", a, b)
					}
					w.Crash()
				}
			}
			w.run()
			w.core.options.Services = kubeflowv1.ServicesPerJob
			replaced("j-worker-0", "j-worker-1")
			w.suspend(true).has(KindService).suspend(false).run().has(KindService, "j-tfjob")
			w.core.options.Services = kubeflowv1.ServicesPerReplica
			replaced("j-tfjob")
			sharing(w)
			replaced("j-tfjob")
			w.wishServices("PerReplica")
			replaced("j-tfjob")
			w.suspend(true).has(KindService).suspend(false).run().has(KindService, "j-worker-0", "j-worker-1")
		})
	}
	t.Run("but none is left that nobody needs", func(t *testing.T) {
		w := given(t, workers("replicas: 1")).run()
		stray := w.service("j-worker-0").DeepCopy()
		stray.Name, stray.UID = "j-tfjob", w.NewUID()
		w.Store(KindService, stray)
		w.settle().has(KindService, "j-worker-0")
	})
}

// TestNoPodComesWhileAServiceOfTheFirstIsRefused: those that come would hold what they request, and wait.
func TestNoPodComesWhileAServiceOfTheFirstIsRefused(t *testing.T) {
	taken := func(w *world, name string) {
		w.Store(KindService, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.NewUID()}})
	}
	t.Run("before any Pod", func(t *testing.T) {
		w := givenTorch(t, torch("2", "", ""))
		taken(w, "j-master-0")
		if w.pass(3).has(KindPod); w.told("NameTaken") != 1 {
			t.Errorf("events: %v", w.Events)
		}
		w.Remove(KindService, "j-master-0")
		w.pass(60).has(KindPod, "j-master-0", "j-worker-0", "j-worker-1")
	})
	t.Run("but a job that has begun gets those that it lacks", func(t *testing.T) {
		w := given(t, workers("replicas: 2")).run()
		w.Remove(KindService, "j-worker-1")
		taken(w, "j-worker-1")
		w.Remove(KindPod, "j-worker-0")
		w.pass(3).has(KindPod, "j-worker-0", "j-worker-1")
	})
	t.Run("nor waits one of which some Pods have ended and are gone", func(t *testing.T) {
		w := given(t, workers("replicas: 3")).run().succeed("j-worker-1")
		w.Remove(KindService, "j-worker-2")
		taken(w, "j-worker-2")
		for _, name := range w.OwnPods() {
			w.Remove(KindPod, name)
		}
		w.pass(3).has(KindPod, "j-worker-0")
	})
}

// TestTheNamesOfHowManyPodsFit is what docs/kubeflow.md says of a job's name of 20 characters in a namespace
// of 15. What is too much for one Service may fit with a Service for each.
func TestTheNamesOfHowManyPodsFit(t *testing.T) {
	for mode, rooms := range map[kubeflowv1.ServiceMode][2]int{
		kubeflowv1.ServicesPerReplica: {2100, 2300}, kubeflowv1.ServicesPerJob: {1500, 1550},
	} {
		for i, replicas := range rooms {
			job := jobOf(t, objectOf(t, "v1", "TFJob", strings.Repeat("x", 20), fmt.Sprintf("{tfReplicaSpecs: {Worker: {replicas: %d, @t}}}", replicas)))
			job.Namespace = strings.Repeat("n", 15)
			r := (Memory{}).read(job, tfJob, Options{Services: mode})
			if (r.invalid == "") != (i == 0) {
				t.Errorf("%s, %d workers: %s", mode, replicas, r.invalid)
			}
			if helps := strings.Contains(r.invalid, "annotation "+KeyServices+": PerReplica"); helps != (i == 1 && mode == kubeflowv1.ServicesPerJob) {
				t.Errorf("%s, %d workers are told: %s", mode, replicas, r.invalid)
			}
		}
	}
}

// TestAJobOfTooLongNamesMayChangeItsServices, as long as there is nothing of it.
func TestAJobOfTooLongNamesMayChangeItsServices(t *testing.T) {
	w := newWorld(t, jobOf(t, objectOf(t, "v1", "TFJob", strings.Repeat("x", 50), "{tfReplicaSpecs: {Worker: {replicas: 2, @t}}}")))
	sharing(w).run().suspend(true).scale("Worker", 1000)
	w.suspend(false).has(KindPod)
	if w.told("TFJobInvalid") != 1 || w.Written.Services != kubeflowv1.ServicesPerJob {
		t.Fatalf("the status is %s, with Services %s; events %v", transcript(w.Written), w.Written.Services, w.Events)
	}
	w.OnAction = func(a plan.Action) {
		if a.Verb == plan.Create && w.Written.Services != "" {
			t.Errorf("%s before its mode is on record", a)
		}
	}
	w.wishServices("PerReplica").settle()
	if n := len(w.Names(KindService)); n != 1000 {
		t.Errorf("there are %d Services, and the status is %s", n, transcript(w.Written))
	}
}

// TestATemplateDoesNotSayWhichServicesAJobHas: annotations of templates are kept, but this one is not theirs.
func TestATemplateDoesNotSayWhichServicesAJobHas(t *testing.T) {
	w := given(t, `{tfReplicaSpecs: {Worker: {template: {metadata: {annotations: {`+KeyServices+`: PerJob, mine: kept}}, spec: {containers: [{name: tensorflow, image: i}]}}}}}`).run()
	if got := w.Pod("j-worker-0").Annotations; got[KeyServices] != "PerReplica" || got["mine"] != "kept" {
		t.Errorf("the Pod has the annotations %v", got)
	}
	w.Written.Services = "" // As an older CRD has it.
	w.Crash()
	w.pass(3).has(KindService, "j-worker-0").has(KindPod, "j-worker-0")
}

// TestASharedServiceStaysAsLongAsAPod, and comes again if somebody deletes it.
func TestASharedServiceStaysAsLongAsAPod(t *testing.T) {
	for policy, want := range map[string][]string{"All": nil, "Running": {"j-tfjob"}, "None": {"j-tfjob"}} {
		t.Run("at the end, under "+policy, func(t *testing.T) {
			w := sharing(given(t, withPolicy("cleanPodPolicy: "+policy, "replicas: 2"))).run().succeed("j-worker-0")
			w.has(KindService, want...)
		})
	}
	t.Run("while a Pod of a suspended job ends", func(t *testing.T) {
		w := sharing(given(t, workers("replicas: 2"))).run()
		w.OnAction = func(a plan.Action) {
			if a.Kind == KindService && a.Verb == plan.Delete && len(w.OwnPods()) > 0 {
				t.Errorf("the Service goes before Pods %v", w.OwnPods())
			}
		}
		w.suspend(true).has(KindPod).has(KindService)
	})
	t.Run("when it was deleted, even if it is refused for a while", func(t *testing.T) {
		w := sharing(given(t, workers("replicas: 2"))).run()
		w.Refuses = func(object metav1.Object) error {
			if _, isPod := object.(*corev1.Pod); isPod {
				return nil
			}
			return errors.New("never")
		}
		refused := true
		w.Fate = func(a plan.Action) jobworld.Fate {
			if refused && a.Verb == plan.Create && a.Tag == TriedAgain {
				return jobworld.Refused
			}
			return jobworld.Done
		}
		w.Remove(KindService, "j-tfjob")
		w.pass(2).says("Created Running").has(KindService)
		refused, w.Refuses = false, func(metav1.Object) error { return nil }
		w.pass(60).says("Created Running").has(KindService, "j-tfjob")
	})
}

// TestTheNameOfASharedServiceIsOneOfAService: at most 63 characters, other for each kind and each job.
func TestTheNameOfASharedServiceIsOneOfAService(t *testing.T) {
	known := map[string]bool{}
	for _, name := range []string{"j", strings.Repeat("a", 54), strings.Repeat("a", 53) + "b", "j-tfjob"} {
		for _, k := range []*kind{tfJob, pyTorchJob, xgBoostJob, paddleJob, jaxJob} {
			service := k.jobServiceName(&Job{ObjectMeta: metav1.ObjectMeta{Name: name}})
			if len(service) > 63 || known[service] || !strings.HasPrefix(service, name[:1]) {
				t.Errorf("the Service of %s %s is %s", k.gvk.Kind, name, service)
			}
			known[service] = true
		}
	}
}
