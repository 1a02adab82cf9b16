// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
)

// launched is an MPIJob of a launcher and two workers, with whatever the launcher and the spec have.
func launched(ofLauncher, ofSpec string) string {
	return "{" + ofSpec + "mpiReplicaSpecs: {Launcher: {" + ofLauncher + "@t}, Worker: {replicas: 2, @t}}}"
}

// config is what the ConfigMap of the job says.
func (w *world) config(key string) string {
	w.T.Helper()
	config, ok := w.settle().Objects[jobworld.Key{Kind: KindConfigMap, Name: "j-config"}].(*corev1.ConfigMap)
	if !ok {
		w.T.Fatal("there is no ConfigMap")
	}
	return config.Data[key]
}

// ready says of a Pod, which runs, whether it is ready.
func (w *world) ready(is corev1.ConditionStatus, name string) *world {
	w.T.Helper()
	pod := w.run(name).Pod(name)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	w.Store(KindPod, pod)
	return w.settle()
}

var launcherAndWorkers = []string{"j-launcher", "j-worker-0", "j-worker-1"}

func TestStoriesOfMPI(t *testing.T) {
	for name, story := range map[string]func(t *testing.T){
		"a launcher, workers, and what they share": func(t *testing.T) {
			w := givenMPI(t, launched("", "runPolicy: {schedulingPolicy: {}}, ")).has(KindPod, launcherAndWorkers...).
				has(KindService, "j").has(KindConfigMap, "j-config").has(KindSecret, "j-ssh")
			if g := w.group(); g.Name != "j-mpijob-1" || g.Spec.MinMember != 3 {
				t.Errorf("the gang is %s of %d", g.Name, g.Spec.MinMember)
			}
			for name, role := range map[string]string{"j-launcher": "launcher", "j-worker-0": "worker", "j-worker-1": "worker"} {
				pod := w.Pod(name)
				if l := pod.Labels; l[kubeflowv1.KeyOperatorName] != "mpi-operator" || l[kubeflowv1.KeyJobName] != "j" || l[kubeflowv1.KeyJobRole] != role {
					t.Errorf("labels of %s: %v", name, l)
				}
				if pod.Spec.Hostname != name || pod.Spec.Subdomain != "j" {
					t.Errorf("%s is %s.%s", name, pod.Spec.Hostname, pod.Spec.Subdomain)
				}
				if owner := pod.OwnerReferences[0]; owner.APIVersion != "kubeflow.org/v2beta1" || owner.Kind != "MPIJob" {
					t.Errorf("the owner of %s is %v", name, owner)
				}
			}
			if s := w.service("j").Spec; s.ClusterIP != "None" || s.PublishNotReadyAddresses || len(s.Selector) != 2 || len(s.Ports) > 0 {
				t.Errorf("the Service is %+v", s)
			}
		},
		"it runs when the launcher and all workers do, and succeeds with the launcher": func(t *testing.T) {
			givenMPI(t, launched("", "")).run("j-launcher", "j-worker-0").says("Created").run("j-worker-1").says("Created Running").inPhase("Running").
				counted("Launcher 1/0/0 Worker 2/0/0").succeed("j-launcher").says("Created !Running(MPIJobRunning) Succeeded").has(KindPod, launcherAndWorkers...)
		},
		"hosts have the domain of the cluster": func(t *testing.T) {
			w := givenMPI(t, launched("", ""))
			w.core.options.ClusterDomain = "tf.training.org"
			if got, want := w.config("hostfile"), "j-worker-0.j.n.svc.tf.training.org slots=1\nj-worker-1.j.n.svc.tf.training.org slots=1\n"; got != want {
				t.Errorf("the hosts are %q, want %q", got, want)
			}
		},
		"workers count from 1 for Kueue if the launcher is one, too": func(t *testing.T) {
			w := givenMPI(t, launched("", "runLauncherAsWorker: true, ")).settle()
			for name, want := range map[string]string{"j-launcher": "0", "j-worker-0": "1", "j-worker-1": "2"} {
				if got := w.Pod(name).Labels[kubeflowv1.KeyReplicaIndex]; got != want {
					t.Errorf("%s has the index %s, want %s", name, got, want)
				}
			}
		},
		"workers that go at the end": func(t *testing.T) {
			for policy, want := range map[string][]string{"None": launcherAndWorkers, "Running": {"j-launcher", "j-worker-1"}, "All": {"j-launcher"}} {
				givenMPI(t, launched("", "runPolicy: {cleanPodPolicy: "+policy+"}, ")).run().exit("j-worker-1", 1).succeed("j-launcher").
					has(KindPod, want...).has(KindService, "j").has(KindConfigMap, "j-config").has(KindPodGroup)
			}
		},
		"workers that fail decide nothing": func(t *testing.T) {
			givenMPI(t, launched("", "")).run().exit("j-worker-1", 1).says("Created Running").counted("Launcher 1/0/0 Worker 1/0/1").
				succeed("j-launcher").says("Created !Running(MPIJobRunning) Succeeded")
		},
		"a worker that is evicted fails the job, and the launcher is stopped": func(t *testing.T) {
			w := givenMPI(t, launched("", "runPolicy: {cleanPodPolicy: All}, ")).run()
			for _, name := range launcherAndWorkers {
				pod := w.Pod(name)
				pod.Spec.NodeName = "node"
				w.Store(KindPod, pod)
			}
			pod := w.Pod("j-worker-1")
			pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
			w.Store(KindPod, pod)
			w.says("Created !Running(MPIJobRunning) Failed").has(KindPod, "j-launcher")
			if c := condition(w.Written, kubeflowv1.JobConditionFailed); c.Reason != "MPIJobEvicted" || w.told("MPIJobEvicted") != 1 || w.Written.CompletionTime == nil {
				t.Errorf("the condition is %+v", c)
			}
			if seconds := w.Pod("j-launcher").Spec.ActiveDeadlineSeconds; seconds == nil || *seconds != 1 {
				t.Errorf("the launcher runs on")
			}
		},
		"a launcher that may not be restarted in place is tried again as often as the backoffLimit says": func(t *testing.T) {
			w := givenMPI(t, launched("restartPolicy: Never, ", "runPolicy: {backoffLimit: 2}, ")).run()
			for range 2 {
				before := w.uid("j-launcher")
				w.exit("j-launcher", 1).says("Created Restarting")
				if after := w.uid("j-launcher"); after == "" || after == before {
					t.Errorf("the launcher is %q, was %q", after, before)
				}
				w.run("j-launcher").says("Created Running")
			}
			w.exit("j-launcher", 1).says("Created !Running(MPIJobRunning) Failed").counted("Launcher 0/0/1 Worker 2/0/0")
		},
		"six tries are the default": func(t *testing.T) {
			w := givenMPI(t, launched("restartPolicy: Never, ", "")).run()
			for range 6 {
				w.exit("j-launcher", 1).pass(40).run("j-launcher").says("Created Running")
			}
			w.exit("j-launcher", 1).says("Created !Running(MPIJobRunning) Failed")
		},
		"a launcher that is restarted in place reaches the backoffLimit, workers don't": func(t *testing.T) {
			w := givenMPI(t, "{runPolicy: {backoffLimit: 2}, mpiReplicaSpecs: {Launcher: {@t}, Worker: {restartPolicy: OnFailure, @t}}}").run()
			w.restarted("j-worker-0", 9).says("Created Running").restarted("j-launcher", 1).says("Created Running").
				restarted("j-launcher", 2).says("Created !Running(MPIJobRunning) Failed")
		},
		"a backoffLimit of 0 is the first failure": func(t *testing.T) {
			givenMPI(t, launched("", "runPolicy: {backoffLimit: 0}, ")).run().exit("j-launcher", 1).says("Created !Running(MPIJobRunning) Failed")
		},
		"a launcher may wait for the workers to be ready, and their gang does not wait for it": func(t *testing.T) {
			w := givenMPI(t, launched("", "launcherCreationPolicy: WaitForWorkersReady, runPolicy: {schedulingPolicy: {}}, ")).has(KindPod, "j-worker-0", "j-worker-1")
			if n := w.group().Spec.MinMember; n != 2 {
				t.Errorf("%d Pods have to start together, want the workers", n)
			}
			w.ready("True", "j-worker-0").ready("False", "j-worker-1").has(KindPod, "j-worker-0", "j-worker-1").
				ready("True", "j-worker-1").has(KindPod, launcherAndWorkers...)
		},
		"a launcher waits for no worker that has ended": func(t *testing.T) {
			givenMPI(t, launched("", "launcherCreationPolicy: WaitForWorkersReady, ")).ready("True", "j-worker-0").run("j-worker-1").exit("j-worker-1", 1).has(KindPod, launcherAndWorkers...)
		},
		"hosts": func(t *testing.T) {
			for of, want := range map[string]string{
				"":                    "j-worker-0.j.n.svc slots=1\nj-worker-1.j.n.svc slots=1\n",
				"slotsPerWorker: 4, ": "j-worker-0.j.n.svc slots=4\nj-worker-1.j.n.svc slots=4\n",
				"mpiImplementation: Intel, slotsPerWorker: 2, ":         "j-worker-0.j.n.svc:2\nj-worker-1.j.n.svc:2\n",
				"mpiImplementation: MPICH, runLauncherAsWorker: true, ": "j-launcher.j.n.svc:1\nj-worker-0.j.n.svc:1\nj-worker-1.j.n.svc:1\n",
			} {
				if got := givenMPI(t, launched("", of)).config("hostfile"); got != want {
					t.Errorf("%s: the hosts are\n%s", of, got)
				}
			}
		},
		"the launcher can look up which workers run, a moment later": func(t *testing.T) {
			w := givenMPI(t, launched("", ""))
			if got := w.config("discover_hosts.sh"); got != "#!/bin/sh\n" {
				t.Errorf("while none runs: %s", got)
			}
			w.run("j-worker-1")
			if got := w.pass(3).config("discover_hosts.sh"); got != "#!/bin/sh\necho j-worker-1.j.n.svc\n" {
				t.Errorf("while one runs: %s", got)
			}
			w.run("j-worker-0").scale("Worker", 3)
			if got := w.pass(3).config("discover_hosts.sh"); got != "#!/bin/sh\necho j-worker-0.j.n.svc\necho j-worker-1.j.n.svc\n" {
				t.Errorf("while both run: %s", got)
			}
			if got := w.config("hostfile"); got != "j-worker-0.j.n.svc slots=1\nj-worker-1.j.n.svc slots=1\nj-worker-2.j.n.svc slots=1\n" {
				t.Errorf("the hosts are %s", got)
			}
		},
		"suspended, an MPIJob keeps its keys": func(t *testing.T) {
			w := givenMPI(t, launched("", "runPolicy: {schedulingPolicy: {}}, ")).run().suspend(true).has(KindPod).has(KindService).has(KindPodGroup).
				has(KindSecret, "j-ssh").says("Created !Running(MPIJobSuspended) Suspended")
			w.suspend(false).has(KindPod, launcherAndWorkers...).has(KindService, "j").run().says("Created !Suspended(MPIJobResumed) Running")
		},
		"the Service goes after all Pods": func(t *testing.T) {
			w := givenMPI(t, launched("", "")).run()
			w.Edit(func(j *Job) { suspended := true; j.Spec.RunPolicy.Suspend = &suspended })
			w.Run()
			if names := w.Names(KindService); len(names) != 1 {
				t.Errorf("Services %v are left while Pods end", names)
			}
			w.has(KindService)
		},
	} {
		t.Run(name, story)
	}
}

// TestWhatPodsOfMPIAreTold is in the first container: keys for all, hosts for the launcher, and a
// daemon of ssh for workers that say nothing of what they run.
func TestWhatPodsOfMPIAreTold(t *testing.T) {
	of := func(spec string) string { return launched("", spec) }
	tests := map[string]struct {
		spec, pod string
		want      []string
	}{
		"a worker": {spec: of(""), pod: "j-worker-0", want: []string{"K_MPI_JOB_ROLE=worker"}},
		"a launcher of OpenMPI": {spec: of("slotsPerWorker: 3, "), pod: "j-launcher", want: []string{"K_MPI_JOB_ROLE=launcher", "OMPI_MCA_orte_keep_fqdn_hostnames=true",
			"OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile", "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10", "OMPI_MCA_orte_set_default_slots=3", "NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES="}},
		"a launcher of Intel's that works, too": {spec: of("mpiImplementation: Intel, runLauncherAsWorker: true, "), pod: "j-launcher", want: []string{"K_MPI_JOB_ROLE=launcher",
			"I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o ConnectionAttempts=10", "I_MPI_PERHOST=1"}},
		"a launcher of MPICH": {spec: of("mpiImplementation: MPICH, "), pod: "j-launcher", want: []string{"K_MPI_JOB_ROLE=launcher", "HYDRA_HOST_FILE=/etc/mpi/hostfile",
			"HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10", "NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES="}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, givenMPI(t, tc.spec).envOf(tc.pod, 0)); diff != "" {
				t.Errorf("variables (-want,+got):\n%s", diff)
			}
		})
	}

	w := givenMPI(t, `{sshAuthMountPath: /home/mpi/.ssh, mpiReplicaSpecs: {Launcher: {@t}, Worker: {replicas: 2, template: {spec: {containers: [{name: mpi, image: i, args: [x]}, {name: log, image: i}]}}}}}`).settle()
	if c := w.Pod("j-worker-0").Spec.Containers; len(c[0].Command) > 0 || len(c[1].VolumeMounts) > 0 || c[0].VolumeMounts[0].MountPath != "/home/mpi/.ssh" {
		t.Errorf("the containers are %+v", c)
	}
	if mode := w.Pod("j-worker-0").Spec.Volumes[0].Secret.DefaultMode; mode != nil {
		t.Errorf("the keys have the mode %o", *mode)
	}
	w = givenMPI(t, of("")).settle()
	worker, launcher := w.Pod("j-worker-0").Spec, w.Pod("j-launcher").Spec
	if got := fmt.Sprint(worker.Containers[0].Command); got != "[/usr/sbin/sshd -De]" || len(launcher.Containers[0].Command) > 0 {
		t.Errorf("a worker runs %s, the launcher %v", got, launcher.Containers[0].Command)
	}
	if got := fmt.Sprint(worker.DNSConfig.Searches); got != "[j.n.svc.cluster.local]" {
		t.Errorf("a worker searches %s", got)
	}
	if len(worker.Volumes) != 1 || len(launcher.Volumes) != 2 || *worker.Volumes[0].Secret.DefaultMode != 0o600 || worker.Volumes[0].Secret.SecretName != "j-ssh" ||
		launcher.Volumes[1].ConfigMap.Name != "j-config" || launcher.Containers[0].VolumeMounts[1].MountPath != "/etc/mpi" {
		t.Errorf("volumes: %+v and %+v", worker.Volumes, launcher.Volumes)
	}
}

// TestTheListsOfHostsFitAConfigMap, or the spec is refused.
func TestTheListsOfHostsFitAConfigMap(t *testing.T) {
	for name, fits := range map[string]bool{"j": true, strings.Repeat("x", 40): false} {
		job := jobOf(t, objectOf(t, "v2beta1", "MPIJob", name, "{mpiReplicaSpecs: {Launcher: {@t}, Worker: {replicas: 9999, @t}}}"))
		job.Namespace = "n"
		if r := (Memory{}).read(job, mpiJob, Options{}); fits != (r.invalid == "") || !fits && !strings.HasPrefix(r.invalid, "spec.mpiReplicaSpecs: the lists of hosts would have ") {
			t.Errorf("the job %s: %s", name, r.invalid)
		}
	}
}
