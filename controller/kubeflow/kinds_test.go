// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

const (
	boosters = "{runPolicy: {schedulingPolicy: {}}, xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 2, @t}}}"
	paddlers = "{paddleReplicaSpecs: {Master: {replicas: 2, @t}, Worker: {replicas: 2, @t}}}"
	jaxers   = "{jaxReplicaSpecs: {Worker: {replicas: 2, @t}}}"
)

// TestStoriesOfMoreKinds are about what XGBoostJobs, PaddleJobs and JAXJobs do otherwise than the
// others: who decides, by which policy, and what clients find them by.
func TestStoriesOfMoreKinds(t *testing.T) {
	for name, story := range map[string]func(t *testing.T){
		"an XGBoostJob runs and succeeds with its master": func(t *testing.T) {
			w := givenXGBoost(t, boosters).has(KindPod, "j-master-0", "j-worker-0", "j-worker-1").has(KindService, "j-master-0", "j-worker-0", "j-worker-1")
			if g := w.group(); g.Name != "j-xgboostjob-1" || g.Spec.MinMember != 3 {
				t.Errorf("the gang is %s of %d", g.Name, g.Spec.MinMember)
			}
			labels := w.Pod("j-master-0").Labels
			if labels[kubeflowv1.KeyOperatorName] != "xgboostjob-controller" || labels[kubeflowv1.KeyJobRole] != "master" || w.Pod("j-worker-0").Labels[kubeflowv1.KeyJobRole] != "" {
				t.Errorf("labels: %v", labels)
			}
			if port := w.service("j-master-0").Spec.Ports[0]; port.Name != "xgboostjob-port" || port.Port != 9999 {
				t.Errorf("the port is %+v", port)
			}
			w.run("j-worker-0").says("Created").run("j-master-0").says("Created Running").succeed("j-worker-0", "j-worker-1").says("Created Running").
				succeed("j-master-0").says("Created !Running(XGBoostJobRunning) Succeeded").counted("Master 0/1/0 Worker 0/2/0")
			if s := w.Written.ReplicaStatuses["Worker"].Selector; s != "" {
				t.Errorf("it has the selector %s, and no scale", s)
			}
		},
		"a worker fails an XGBoostJob, by the policy that it has if it names none": func(t *testing.T) {
			givenXGBoost(t, boosters).run().exit("j-worker-1", 1).says("Created !Running(XGBoostJobRunning) Failed").counted("Master 1/0/0 Worker 1/0/1")
		},
		"a Pod of an XGBoostJob is made anew under OnFailure": func(t *testing.T) {
			givenXGBoost(t, "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 2, restartPolicy: OnFailure, @t}}}").run().exit("j-worker-1", -1).
				says("Created Restarting").run().says("Created Running")
		},
		"a PaddleJob with servers succeeds when all of them have": func(t *testing.T) {
			w := givenPaddle(t, paddlers).run("j-worker-0").says("Created").run().says("Created Running").
				succeed("j-worker-0", "j-worker-1", "j-master-1").says("Created Running").succeed("j-master-0").
				says("Created !Running(PaddleJobRunning) Succeeded").counted("Master 0/2/0 Worker 0/2/0")
			for _, name := range []string{"j-master-0", "j-master-1"} {
				if role := w.Pod(name).Labels[kubeflowv1.KeyJobRole]; role != "master" {
					t.Errorf("%s has the role %q", name, role)
				}
			}
			const want = "training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=paddlejob-controller,training.kubeflow.org/replica-type=worker"
			if got := w.Written.ReplicaStatuses["Worker"].Selector; got != want {
				t.Errorf("the selector is %s", got)
			}
		},
		"a PaddleJob of workers alone needs all of them, elastic or not": func(t *testing.T) {
			givenPaddle(t, "{elasticPolicy: {minReplicas: 1, maxReplicas: 3}, paddleReplicaSpecs: {Worker: {replicas: 2, @t}}}").run().
				succeed("j-worker-1").says("Created Running").succeed("j-worker-0").says("Created !Running(PaddleJobRunning) Succeeded")
		},
		"an evicted worker of a PaddleJob is made anew, by the policy that it has if it names none": func(t *testing.T) {
			givenPaddle(t, paddlers).run().exit("j-worker-0", -1).says("Created Restarting").run().says("Created Running")
		},
		"an autoscaler scales the workers of a PaddleJob": func(t *testing.T) {
			w := givenPaddle(t, `{runPolicy: {schedulingPolicy: {}}, elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]},
  paddleReplicaSpecs: {Worker: {replicas: 2, @t}}}`).has(KindAutoscaler, "j")
			if got := w.core.last.Autoscalers["j"].(*autoscalingv2.HorizontalPodAutoscaler).Spec; got.MaxReplicas != 3 || *got.MinReplicas != 1 || got.ScaleTargetRef.Kind != "PaddleJob" {
				t.Errorf("the autoscaler is %+v", got)
			}
			if n := w.group().Spec.MinMember; n != 1 {
				t.Errorf("%d Pods have to start together, want the fewest that there may be", n)
			}
			w.scale("Worker", 3).has(KindPod, "j-worker-0", "j-worker-1", "j-worker-2").succeed("j-worker-0", "j-worker-1", "j-worker-2").has(KindAutoscaler)
		},
		"a JAXJob succeeds with all its workers": func(t *testing.T) {
			w := givenJAX(t, jaxers).run("j-worker-1").says("Created Running").succeed("j-worker-0").says("Created Running").
				succeed("j-worker-1").says("Created !Running(JAXJobRunning) Succeeded").counted("Worker 0/2/0")
			const want = "training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=jaxjob-controller,training.kubeflow.org/replica-type=worker"
			if got := w.Written.ReplicaStatuses["Worker"].Selector; got != want {
				t.Errorf("the selector is %s", got)
			}
		},
		"a worker fails a JAXJob, by the policy that it has if it names none": func(t *testing.T) {
			givenJAX(t, jaxers).run().exit("j-worker-1", 1).says("Created !Running(JAXJobRunning) Failed")
		},
		"jobs of all kinds are suspended and resumed": func(t *testing.T) {
			for kind, w := range map[string]*world{"XGBoostJob": givenXGBoost(t, boosters), "PaddleJob": givenPaddle(t, paddlers), "JAXJob": givenJAX(t, jaxers)} {
				w.run().suspend(true).has(KindPod).has(KindService).has(KindPodGroup).says("Created !Running(" + kind + "Suspended) Suspended").
					suspend(false).run().says("Created !Suspended(" + kind + "Resumed) Running")
			}
		},
	} {
		t.Run(name, story)
	}
}
