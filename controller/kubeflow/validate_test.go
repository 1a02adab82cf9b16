// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/internal/testing/crd"
)

const (
	// templateOfTF is a template that nothing is wrong with.
	templateOfTF = "template: {spec: {containers: [{name: tensorflow, image: i}]}}"

	letters = "metadata.name: metadata.name must begin with a lower-case letter, have only such letters, digits and hyphens, and end with a letter or digit, because Services are named by it"
	tooLong = "metadata.name: metadata.name must be so short that the names of Pods and Services, which have the type and the index behind it, have at most 63 characters"
)

// TestTheCRDsAndValidateRefuseTheSameJobs holds both to one table. In specs, @t stands for
// a good template. kind is TFJob where none is named, and an object is made through v1.
func TestTheCRDsAndValidateRefuseTheSameJobs(t *testing.T) {
	const (
		types        = "spec.tfReplicaSpecs: types must be PS, Worker, Chief, Master or Evaluator"
		typesOfTorch = "spec.pytorchReplicaSpecs: types must be Master or Worker"
		designed     = "spec.tfReplicaSpecs: types of v1alpha2 must be PS, Worker or Local"
		twice        = "spec.tfReplicaSpecs: types must differ in more than upper and lower case"
		container    = "spec.tfReplicaSpecs: every template needs a container named tensorflow"
		none         = "spec.tfReplicaSpecs: at least 1 replica is needed"
		many         = "spec.tfReplicaSpecs: must have at most 10000 replicas, which is their sum over all types"
		worker       = "spec.tfReplicaSpecs: Worker decides when the job succeeds, and needs at least 1 replica"
		chief        = "spec.tfReplicaSpecs: Chief or Master decides when the job succeeds, and needs at least 1 replica"
		written      = "spec.pytorchReplicaSpecs: Master needs replicas: 1, written out"
		both         = "spec.nprocPerNode: must not be set together with elasticPolicy.nProcPerNode"
	)
	ofWorker := func(rest string) string { return "{tfReplicaSpecs: {Worker: {" + rest + "}}}" }
	withPolicy := func(policy string) string {
		return "{runPolicy: " + policy + ", tfReplicaSpecs: {Worker: {@t}}}"
	}
	elastic := func(policy string) string {
		return "{elasticPolicy: " + policy + ", pytorchReplicaSpecs: {Worker: {@t}}}"
	}
	tests := map[string]struct {
		version, kind, name, spec string
		// want is what both find, as "field: detail", or "field" where texts differ.
		want []string
		// wantOfGo is what Validate finds, where it finds other fields than the CRD.
		wantOfGo []string
	}{
		"a TFJob": {spec: "{tfReplicaSpecs: {Worker: {replicas: 4, @t}, PS: {replicas: 2, @t}}}"},
		"a TFJob with all there is": {spec: `{runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 0, activeDeadlineSeconds: 60, backoffLimit: 3, suspend: true,
  managedBy: lockstep.dev/kubeflow, schedulingPolicy: {minAvailable: 99, queue: q, priorityClass: high, scheduleTimeoutSeconds: 5, minResources: {cpu: 1, memory: 1Gi}}},
  successPolicy: AllWorkers, enableDynamicWorker: true, tfReplicaSpecs: {chief: {replicas: 1, restartPolicy: ExitCode, @t}, pS: {restartPolicy: Always, @t},
  WORKER: {restartPolicy: OnFailure, @t}, Evaluator: {replicas: 0, restartPolicy: Never, @t}}}`},
		"amounts of all kinds": {spec: withPolicy("{schedulingPolicy: {minResources: {cpu: 100m, memory: '1.5e9', nvidia.com/gpu: 4, x: '.5', y: '1e-999'}}}")},
		"an amount with a long exponent": {spec: withPolicy("{schedulingPolicy: {minResources: {cpu: '1.1e2000000000'}}}"),
			want: []string{"spec.runPolicy.schedulingPolicy.minResources.cpu"}},
		"an amount that is none": {spec: withPolicy("{schedulingPolicy: {minResources: {cpu: [1]}}}"),
			want: []string{"spec.runPolicy.schedulingPolicy.minResources.cpu"}},
		"a template with fields that nobody knows": {spec: ofWorker("template: {metadata: {moods: [good]}, spec: {moon: full, containers: [{name: tensorflow, image: i, stars: 3}]}}")},
		"parameter servers alone":                  {spec: "{tfReplicaSpecs: {PS: {@t}}}"},
		"a chief without workers":                  {spec: "{tfReplicaSpecs: {Chief: {@t}, Worker: {replicas: 0, @t}}}"},

		"no types":                     {spec: "{tfReplicaSpecs: {}}", want: []string{"spec.tfReplicaSpecs"}},
		"a type that nobody knows":     {spec: "{tfReplicaSpecs: {Worker: {@t}, Boss: {@t}}}", want: []string{types}},
		"a type of v1alpha2":           {spec: "{tfReplicaSpecs: {Local: {@t}}}", want: []string{types}},
		"two types but for their case": {spec: "{tfReplicaSpecs: {ps: {@t}, PS: {@t}}}", want: []string{twice}},
		"a chief and a master":         {spec: "{tfReplicaSpecs: {Chief: {@t}, master: {@t}}}", want: []string{"spec.tfReplicaSpecs: at most one of Chief and Master may be there"}},
		"no chief of them":             {spec: "{tfReplicaSpecs: {Chief: {replicas: 0, @t}, Worker: {@t}}}", want: []string{chief}},
		"no worker of them":            {spec: "{tfReplicaSpecs: {worker: {replicas: 0, @t}, PS: {@t}}}", want: []string{worker}},
		"no replica at all":            {spec: "{tfReplicaSpecs: {PS: {replicas: 0, @t}}}", want: []string{none}},
		"negative replicas":            {spec: "{tfReplicaSpecs: {PS: {@t}, Worker: {replicas: -1, @t}}}", want: []string{"spec.tfReplicaSpecs.Worker.replicas", worker}, wantOfGo: []string{"spec.tfReplicaSpecs.Worker.replicas"}},
		"as many Pods as there may be": {spec: "{tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 9999, @t}}}"},
		"one Pod too many":             {spec: "{tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 10000, @t}}}", want: []string{many}},
		"the wrong container":          {spec: ofWorker("template: {spec: {containers: [{name: tf, image: i}]}}"), want: []string{container}},
		"a restartPolicy that nobody knows": {
			spec: ofWorker("restartPolicy: x, @t"), want: []string{"spec.tfReplicaSpecs.Worker.restartPolicy"},
		},
		"no template": {spec: ofWorker("replicas: 1"), want: []string{"spec.tfReplicaSpecs.Worker.template"}},
		"no containers": {spec: ofWorker("template: {spec: {containers: []}}"),
			want: []string{"spec.tfReplicaSpecs.Worker.template.spec.containers", container}, wantOfGo: []string{"spec.tfReplicaSpecs.Worker.template"}},
		"an empty image": {spec: ofWorker("template: {spec: {containers: [{name: tensorflow, image: ''}]}}"),
			want: []string{"spec.tfReplicaSpecs.Worker.template.spec.containers[0].image"}},
		"no image": {spec: ofWorker("template: {spec: {containers: [{name: tensorflow}]}}"),
			want: []string{"spec.tfReplicaSpecs.Worker.template.spec.containers[0].image"}},
		"a template that takes long to read": {spec: ofWorker("template: {spec: {containers: [{name: tensorflow, image: i, args: [" + strings.Repeat("a, ", 20_000) + "a]}]}}"),
			want: []string{}, wantOfGo: []string{"spec.tfReplicaSpecs.Worker.template"}},
		"a text where a number belongs": {spec: ofWorker("template: {spec: {terminationGracePeriodSeconds: soon, containers: [{name: tensorflow, image: i}]}}"),
			want: []string{}, wantOfGo: []string{"spec.tfReplicaSpecs.Worker.template"}},

		"a name that begins with a digit":  {name: "00t", spec: ofWorker("@t"), want: []string{letters}},
		"a name with a dot":                {name: "a.b", spec: ofWorker("@t"), want: []string{letters}},
		"the longest name":                 {name: strings.Repeat("x", 54), spec: ofWorker("replicas: 10, @t")},
		"a name one too long":              {name: strings.Repeat("x", 54), spec: ofWorker("replicas: 11, @t"), want: []string{tooLong}},
		"a name of 60 letters":             {name: strings.Repeat("x", 60), spec: ofWorker("@t"), want: []string{tooLong}},
		"the longest name of v1alpha2":     {version: "v1alpha2", name: strings.Repeat("x", 45), spec: ofWorker("replicas: 9, @t")},
		"a name of v1alpha2 one too long":  {version: "v1alpha2", name: strings.Repeat("x", 45), spec: ofWorker("replicas: 10, @t"), want: []string{tooLong}},
		"the longest name of a PyTorchJob": {kind: "PyTorchJob", name: strings.Repeat("x", 54), spec: "{pytorchReplicaSpecs: {Worker: {replicas: 10, @t}}}"},
		"a name of a PyTorchJob too long":  {kind: "PyTorchJob", name: strings.Repeat("x", 54), spec: "{pytorchReplicaSpecs: {Worker: {replicas: 11, @t}}}", want: []string{tooLong}},

		"negative limits": {spec: withPolicy("{ttlSecondsAfterFinished: -1, activeDeadlineSeconds: -1, backoffLimit: -1, schedulingPolicy: {minAvailable: 0, scheduleTimeoutSeconds: -1}}"),
			want: []string{"spec.runPolicy.activeDeadlineSeconds", "spec.runPolicy.backoffLimit", "spec.runPolicy.schedulingPolicy.minAvailable",
				"spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", "spec.runPolicy.ttlSecondsAfterFinished"}},
		"a deadline of thousands of years": {spec: withPolicy("{activeDeadlineSeconds: 9223372037}"), want: []string{"spec.runPolicy.activeDeadlineSeconds"}},
		"words that nobody knows": {spec: "{successPolicy: Some, runPolicy: {cleanPodPolicy: Most, managedBy: x/y}, tfReplicaSpecs: {Worker: {@t}}}",
			want: []string{"spec.runPolicy.cleanPodPolicy", "spec.runPolicy.managedBy", "spec.successPolicy"}},
		"empty words": {spec: "{successPolicy: '', runPolicy: {cleanPodPolicy: '', managedBy: '', schedulingPolicy: {queue: '', priorityClass: ''}}, tfReplicaSpecs: {Worker: {restartPolicy: '', @t}}}"},
		"names that are none": {spec: withPolicy("{schedulingPolicy: {queue: a_b, priorityClass: A}}"),
			want: []string{"spec.runPolicy.schedulingPolicy.priorityClass", "spec.runPolicy.schedulingPolicy.queue"}},

		"a TFJob of v1alpha2":              {version: "v1alpha2", spec: "{tfReplicaSpecs: {PS: {replicas: 2, @t}, Worker: {replicas: 3, @t}}}"},
		"a local one":                      {version: "v1alpha2", spec: "{tfReplicaSpecs: {Local: {@t}}}"},
		"any container, of v1alpha2":       {version: "v1alpha2", spec: ofWorker("template: {spec: {containers: [{name: x, image: i}]}}")},
		"a type that v1alpha2 lacks":       {version: "v1alpha2", spec: "{tfReplicaSpecs: {Chief: {@t}}}", want: []string{designed}},
		"a type of v1alpha2 in lower case": {version: "v1alpha2", spec: "{tfReplicaSpecs: {ps: {@t}}}", want: []string{designed}},
		"workers of none, of v1alpha2":     {version: "v1alpha2", spec: "{tfReplicaSpecs: {PS: {@t}, Worker: {replicas: 0, @t}}}"},
		"no replica, of v1alpha2":          {version: "v1alpha2", spec: "{tfReplicaSpecs: {Worker: {replicas: 0, @t}}}", want: []string{none}},

		"a PyTorchJob": {kind: "PyTorchJob", spec: "{nprocPerNode: '4', pytorchReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 3, @t}}}"},
		"an elastic one": {kind: "PyTorchJob", spec: elastic(`{minReplicas: 1, maxReplicas: 3, rdzvBackend: etcd-v2, rdzvPort: 1234, rdzvHost: h, rdzvId: r, rdzvConf: [{key: a, value: "1"}],
  standalone: true, nProcPerNode: 2, maxRestarts: 0, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}`)},
		"an elastic one without settings":    {kind: "PyTorchJob", spec: elastic("{rdzvConf: []}")},
		"workers alone":                      {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Worker: {@t}}}"},
		"two masters":                        {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Master: {replicas: 2, @t}}}", want: []string{written}},
		"a master that is not written out":   {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Master: {@t}}}", want: []string{written}},
		"no worker of a PyTorchJob":          {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 0, @t}}}", want: []string{"spec.pytorchReplicaSpecs: Worker needs at least 1 replica"}},
		"a type in lower case":               {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {worker: {@t}}}", want: []string{typesOfTorch}},
		"the container of another kind":      {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Worker: {" + templateOfTF + "}}}", want: []string{"spec.pytorchReplicaSpecs: every template needs a container named pytorch"}},
		"too many of a PyTorchJob":           {kind: "PyTorchJob", spec: "{pytorchReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 10000, @t}}}", want: []string{"spec.pytorchReplicaSpecs: must have at most 10000 replicas, which is their sum over all types"}},
		"elasticity without workers":         {kind: "PyTorchJob", spec: "{elasticPolicy: {}, pytorchReplicaSpecs: {Master: {replicas: 1, @t}}}", want: []string{"spec.elasticPolicy: needs the type Worker"}},
		"two numbers of processes":           {kind: "PyTorchJob", spec: "{nprocPerNode: '2', elasticPolicy: {nProcPerNode: 2}, pytorchReplicaSpecs: {Worker: {@t}}}", want: []string{both}},
		"a number of processes that is none": {kind: "PyTorchJob", spec: "{nprocPerNode: '0', pytorchReplicaSpecs: {Worker: {@t}}}", want: []string{"spec.nprocPerNode"}},
		"fewest above most":                  {kind: "PyTorchJob", spec: elastic("{minReplicas: 3, maxReplicas: 2}"), want: []string{"spec.elasticPolicy.minReplicas: must be at most maxReplicas"}},
		"numbers that are too small": {kind: "PyTorchJob", spec: elastic("{minReplicas: 0, maxReplicas: 0, rdzvPort: 0, nProcPerNode: 0, maxRestarts: -1}"),
			want: []string{"spec.elasticPolicy.maxReplicas", "spec.elasticPolicy.maxRestarts", "spec.elasticPolicy.minReplicas", "spec.elasticPolicy.nProcPerNode", "spec.elasticPolicy.rdzvPort"}},
		"a backend that nobody knows": {kind: "PyTorchJob", spec: elastic("{rdzvBackend: gloo}"), want: []string{"spec.elasticPolicy.rdzvBackend"}},
		"a metric that takes for ever to read": {kind: "PyTorchJob", spec: elastic(`{metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: "1.0000000000000000001e2000000000"}}}]}`),
			want: []string{}, wantOfGo: []string{"spec.elasticPolicy.metrics: element 0: resource.target.averageValue: must be a quantity with an exponent from -999 to 999, is \"1.0000000000000000001e2000000000\""}},
		"texts about the rendezvous that are too long": {kind: "PyTorchJob", spec: elastic("{rdzvHost: " + strings.Repeat("h", 254) + ", rdzvId: " + strings.Repeat("i", 1025) +
			", rdzvConf: [{key: a, value: b}, {key: " + strings.Repeat("k", 1025) + ", value: " + strings.Repeat("v", 1025) + "}]}"),
			want: []string{"spec.elasticPolicy.rdzvConf[1].key", "spec.elasticPolicy.rdzvConf[1].value", "spec.elasticPolicy.rdzvHost", "spec.elasticPolicy.rdzvId"}},
		"too many settings": {kind: "PyTorchJob", spec: elastic("{rdzvConf: [" + strings.Repeat("{key: a}, ", 64) + "{key: a}]}"), want: []string{"spec.elasticPolicy.rdzvConf"}},
		"too many metrics":  {kind: "PyTorchJob", spec: elastic("{metrics: [" + strings.Repeat("{type: Resource}, ", 32) + "{type: Resource}]}"), want: []string{"spec.elasticPolicy.metrics"}},
		"a metric of many bytes": {kind: "PyTorchJob", spec: elastic("{metrics: [{type: " + strings.Repeat("x", 16<<10) + "}]}"),
			want: []string{}, wantOfGo: []string{"spec.elasticPolicy.metrics"}},
		"an XGBoostJob":                        {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 2, restartPolicy: ExitCode, @t}}}"},
		"an XGBoostJob of a master alone":      {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 1, @t}}}"},
		"an XGBoostJob whose workers are none": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 0, @t}}}"},
		"an XGBoostJob without a master": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Worker: {@t}}}",
			want: []string{"spec.xgbReplicaSpecs: Master decides when the job succeeds, and has to be there"}},
		"two masters of an XGBoostJob": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 2, @t}, Worker: {@t}}}",
			want: []string{"spec.xgbReplicaSpecs: Master needs replicas: 1, written out"}},
		"a master of an XGBoostJob that is not written out": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {@t}}}",
			want: []string{"spec.xgbReplicaSpecs: Master needs replicas: 1, written out"}},
		"a type that an XGBoostJob lacks": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, PS: {@t}}}",
			want: []string{"spec.xgbReplicaSpecs: types must be Master or Worker"}},
		"a container that does not boost": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 1, " + templateOfTF + "}}}",
			want: []string{"spec.xgbReplicaSpecs: every template needs a container named xgboost"}},
		"a name of an XGBoostJob too long": {kind: "XGBoostJob", name: strings.Repeat("x", 55), spec: "{xgbReplicaSpecs: {Master: {replicas: 1, @t}}}", want: []string{tooLong}},
		"too many of an XGBoostJob": {kind: "XGBoostJob", spec: "{xgbReplicaSpecs: {Master: {replicas: 1, @t}, Worker: {replicas: 10000, @t}}}",
			want: []string{"spec.xgbReplicaSpecs: must have at most 10000 replicas, which is their sum over all types"}},

		"a PaddleJob": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Master: {replicas: 2, @t}, Worker: {replicas: 3, @t}}}"},
		"a PaddleJob of workers alone, elastic": {kind: "PaddleJob", spec: `{elasticPolicy: {minReplicas: 1, maxReplicas: 4, maxRestarts: 2, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]},
  paddleReplicaSpecs: {Worker: {replicas: 2, @t}}}`},
		"a PaddleJob of a master alone":      {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Master: {@t}}}"},
		"a PaddleJob whose workers are none": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Master: {@t}, Worker: {replicas: 0, @t}}}"},
		"no worker of a PaddleJob": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Worker: {replicas: 0, @t}}}",
			want: []string{"spec.paddleReplicaSpecs: Worker decides when the job succeeds, and needs at least 1 replica"}},
		"no master of them, of a PaddleJob": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Master: {replicas: 0, @t}, Worker: {@t}}}",
			want: []string{"spec.paddleReplicaSpecs: Master decides when the job succeeds, and needs at least 1 replica"}},
		"a type that a PaddleJob lacks": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Chief: {@t}}}",
			want: []string{"spec.paddleReplicaSpecs: types must be Master or Worker"}},
		"a container that does not paddle": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Worker: {" + templateOfTF + "}}}",
			want: []string{"spec.paddleReplicaSpecs: every template needs a container named paddle"}},
		"an elastic PaddleJob without workers": {kind: "PaddleJob", spec: "{elasticPolicy: {}, paddleReplicaSpecs: {Master: {@t}}}", want: []string{"spec.elasticPolicy: needs the type Worker"}},
		"fewest above most, of a PaddleJob": {kind: "PaddleJob", spec: "{elasticPolicy: {minReplicas: 3, maxReplicas: 2, maxRestarts: -1}, paddleReplicaSpecs: {Worker: {@t}}}",
			want: []string{"spec.elasticPolicy.maxRestarts", "spec.elasticPolicy.minReplicas: must be at most maxReplicas"}},
		"a name of a PaddleJob too long": {kind: "PaddleJob", name: strings.Repeat("x", 55), spec: "{paddleReplicaSpecs: {Worker: {@t}}}", want: []string{tooLong}},
		"too many of a PaddleJob": {kind: "PaddleJob", spec: "{paddleReplicaSpecs: {Worker: {replicas: 10001, @t}}}",
			want:     []string{"spec.paddleReplicaSpecs.Worker.replicas", "spec.paddleReplicaSpecs: must have at most 10000 replicas, which is their sum over all types"},
			wantOfGo: []string{"spec.paddleReplicaSpecs: must have at most 10000 replicas, which is their sum over all types"}},

		"a JAXJob":                    {kind: "JAXJob", spec: "{runPolicy: {schedulingPolicy: {}}, jaxReplicaSpecs: {Worker: {replicas: 3, @t}}}"},
		"no worker of a JAXJob":       {kind: "JAXJob", spec: "{jaxReplicaSpecs: {Worker: {replicas: 0, @t}}}", want: []string{"spec.jaxReplicaSpecs: Worker decides when the job succeeds, and needs at least 1 replica"}},
		"a type that a JAXJob lacks":  {kind: "JAXJob", spec: "{jaxReplicaSpecs: {Master: {@t}}}", want: []string{"spec.jaxReplicaSpecs: types must be Worker"}},
		"a container that is no JAX":  {kind: "JAXJob", spec: "{jaxReplicaSpecs: {Worker: {" + templateOfTF + "}}}", want: []string{"spec.jaxReplicaSpecs: every template needs a container named jax"}},
		"a name of a JAXJob too long": {kind: "JAXJob", name: strings.Repeat("x", 55), spec: "{jaxReplicaSpecs: {Worker: {@t}}}", want: []string{tooLong}},
		"no types of a JAXJob":        {kind: "JAXJob", spec: "{jaxReplicaSpecs: {}}", want: []string{"spec.jaxReplicaSpecs"}},
		"an MPIJob": {version: "v2beta1", kind: "MPIJob", spec: `{slotsPerWorker: 4, runLauncherAsWorker: true, sshAuthMountPath: /home/mpi/.ssh, launcherCreationPolicy: WaitForWorkersReady, mpiImplementation: MPICH,
  runPolicy: {managedBy: kubeflow.org/mpi-operator, cleanPodPolicy: Running, backoffLimit: 2}, mpiReplicaSpecs: {Launcher: {replicas: 1, restartPolicy: Never, @t}, Worker: {replicas: 2, restartPolicy: OnFailure, @t}}}`},
		"an MPIJob of a launcher alone": {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Launcher: {@t}}}"},
		"an MPIJob without a launcher": {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Worker: {@t}}}",
			want: []string{"spec.mpiReplicaSpecs: Launcher decides when the job succeeds, and has to be there"}},
		"two launchers":          {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Launcher: {replicas: 2, @t}}}", want: []string{"spec.mpiReplicaSpecs: Launcher needs replicas: 1"}},
		"no worker of an MPIJob": {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Launcher: {@t}, Worker: {replicas: 0, @t}}}", want: []string{"spec.mpiReplicaSpecs: Worker needs at least 1 replica"}},
		"a type that an MPIJob lacks": {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Launcher: {@t}, PS: {@t}}}",
			want: []string{"spec.mpiReplicaSpecs: types must be Launcher or Worker"}},
		"a policy that an MPIJob lacks": {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Launcher: {restartPolicy: ExitCode, @t}}}",
			want: []string{"spec.mpiReplicaSpecs: restartPolicy must be Never or OnFailure"}},
		"words of MPI that nobody knows": {version: "v2beta1", kind: "MPIJob", spec: "{slotsPerWorker: -1, launcherCreationPolicy: Later, mpiImplementation: Some, sshAuthMountPath: " + strings.Repeat("/", 1025) + ", mpiReplicaSpecs: {Launcher: {@t}}}",
			want: []string{"spec.launcherCreationPolicy", "spec.mpiImplementation", "spec.slotsPerWorker", "spec.sshAuthMountPath"}},
		"an MPIJob of the training operator":           {version: "v2beta1", kind: "MPIJob", spec: "{runPolicy: {managedBy: kubeflow.org/training-operator}, mpiReplicaSpecs: {Launcher: {@t}}}", want: []string{"spec.runPolicy.managedBy"}},
		"a TFJob of the MPI operator":                  {spec: withPolicy("{managedBy: kubeflow.org/mpi-operator}"), want: []string{"spec.runPolicy.managedBy"}},
		"the longest name of an MPIJob":                {version: "v2beta1", kind: "MPIJob", name: strings.Repeat("x", 54), spec: "{mpiReplicaSpecs: {Launcher: {@t}, Worker: {replicas: 10, @t}}}"},
		"a name of an MPIJob too long":                 {version: "v2beta1", kind: "MPIJob", name: strings.Repeat("x", 55), spec: "{mpiReplicaSpecs: {Launcher: {@t}}}", want: []string{tooLong}},
		"a name of an MPIJob too long for its workers": {version: "v2beta1", kind: "MPIJob", name: strings.Repeat("x", 54), spec: "{mpiReplicaSpecs: {Launcher: {@t}, Worker: {replicas: 11, @t}}}", want: []string{tooLong}},
		"too many of an MPIJob": {version: "v2beta1", kind: "MPIJob", spec: "{mpiReplicaSpecs: {Launcher: {@t}, Worker: {replicas: 10000, @t}}}",
			want: []string{"spec.mpiReplicaSpecs: must have at most 10000 replicas, which is their sum over all types"}},
		"a metric that is none": {kind: "PyTorchJob", spec: elastic("{metrics: [{type: 7}]}"), want: []string{}, wantOfGo: []string{"spec.elasticPolicy.metrics"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			wantOfGo := tc.wantOfGo
			if wantOfGo == nil {
				wantOfGo = tc.want
			}
			object := objectOf(t, tc.version, tc.kind, tc.name, tc.spec)
			validator := validatorOf(t, object)
			crd.Compare(t, "the CRD", slices.Clone(tc.want), validator.Create(t, object))
			crd.Compare(t, "Validate", slices.Clone(wantOfGo), Validate(jobOf(t, object)))
		})
	}
}

// TestWhatMustNotChangeIsRefused updates jobs through the versions of the API.
func TestWhatMustNotChangeIsRefused(t *testing.T) {
	const (
		manager = "spec.runPolicy.managedBy: is immutable: a job never changes hands"
		queue   = "spec.runPolicy.schedulingPolicy.queue: is immutable once it is set"
		made    = "spec.createdAs: stays as it was made: a TFJob that was made through kubeflow.org/v1 is changed through v1 only, and clients that don't know the field may patch, but not replace"
		job     = "{runPolicy: {schedulingPolicy: {queue: q}, managedBy: kubeflow.org/training-operator}, tfReplicaSpecs: {Worker: {replicas: 2, @t}}}"
		bare    = "{tfReplicaSpecs: {Worker: {replicas: 2, @t}}}"
	)
	tests := map[string]struct {
		madeThrough, through string
		before, old, new     string
		want                 []string
	}{
		"nothing":                          {before: job},
		"replicas and a template":          {before: job, old: "replicas: 2, @t", new: "replicas: 3, template: {spec: {containers: [{name: tensorflow, image: other}]}}"},
		"limits":                           {before: job, old: "{schedulingPolicy", new: "{backoffLimit: 1, suspend: true, cleanPodPolicy: All, schedulingPolicy"},
		"minAvailable":                     {before: job, old: "queue: q", new: "queue: q, minAvailable: 1"},
		"the manager":                      {before: job, old: "kubeflow.org/training-operator", new: "lockstep.dev/kubeflow", want: []string{manager}},
		"no manager":                       {before: job, old: ", managedBy: kubeflow.org/training-operator", want: []string{manager}},
		"a manager":                        {before: bare, old: "{tfReplicaSpecs", new: "{runPolicy: {managedBy: lockstep.dev/kubeflow}, tfReplicaSpecs", want: []string{manager}},
		"a manager that is empty":          {before: bare, old: "{tfReplicaSpecs", new: "{runPolicy: {managedBy: ''}, tfReplicaSpecs"},
		"the queue":                        {before: job, old: "queue: q", new: "queue: r", want: []string{queue}},
		"no queue":                         {before: job, old: "queue: q", want: []string{queue}},
		"a queue":                          {before: bare, old: "{tfReplicaSpecs", new: "{runPolicy: {schedulingPolicy: {queue: q}}, tfReplicaSpecs"},
		"a job of v1alpha2 through itself": {madeThrough: "v1alpha2", through: "v1alpha2", before: bare, old: "replicas: 2", new: "replicas: 3"},
		"a job of v1alpha2 through v1":     {madeThrough: "v1alpha2", before: bare, old: "{tfReplicaSpecs", new: "{createdAs: v1alpha2, tfReplicaSpecs"},
		"a job of v1alpha2 by a client that drops the mark": {madeThrough: "v1alpha2", before: bare, want: []string{made}},
		"a job of v1 through v1alpha2":                      {through: "v1alpha2", before: bare, want: []string{made}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			old := objectOf(t, tc.madeThrough, "", "", tc.before)
			if problems := validatorOf(t, old).Create(t, old); len(problems) > 0 {
				t.Fatalf("creating it: %v", problems)
			}
			object := objectOf(t, tc.through, "", "", strings.Replace(tc.before, tc.old, tc.new, 1))
			crd.Compare(t, "the CRD", tc.want, validatorOf(t, object).Update(t, object, runtime.DeepCopyJSON(old)))
		})
	}
}

// TestAJobThatWasStoredUnderAnotherCRDMayBeChanged, though its name is one that no new job may have: else
// its status could never be written. More replicas it does not get.
func TestAJobThatWasStoredUnderAnotherCRDMayBeChanged(t *testing.T) {
	const tooLong = "metadata.name must be so short"
	for _, name := range []string{"0" + strings.Repeat("j", 20), strings.Repeat("j", 60)} {
		old := objectOf(t, "", "", name, "{tfReplicaSpecs: {Worker: {replicas: 2, @t}}}")
		if problems := validatorOf(t, old).Create(t, old); len(problems) == 0 {
			t.Fatalf("a new job may be named %s", name)
		}
		object := runtime.DeepCopyJSON(old)
		object["status"] = map[string]any{"phase": "Failed"}
		if problems := validatorOf(t, object).Update(t, object, runtime.DeepCopyJSON(old)); len(problems) > 0 {
			t.Errorf("the status can't be written: %v", problems)
		}
		object = objectOf(t, "", "", name, "{tfReplicaSpecs: {Worker: {replicas: 20, @t}}}")
		if problems := crd.Texts(validatorOf(t, object).Update(t, object, runtime.DeepCopyJSON(old))); len(name) == 60 && (len(problems) != 1 || !strings.Contains(problems[0], tooLong)) {
			t.Errorf("with more replicas: %v", problems)
		}
	}
}

// TestAMarkTellsByWhichVersionATFJobWasMade: it is the only default of the schemas that
// differs.
func TestAMarkTellsByWhichVersionATFJobWasMade(t *testing.T) {
	for version, want := range map[string]kubeflowv1.CreatedAs{"v1": "", "v1alpha2": kubeflowv1.CreatedAsV1alpha2} {
		object := objectOf(t, version, "TFJob", "", "{runPolicy: {}, tfReplicaSpecs: {Worker: {@t}}}")
		if problems := validatorOf(t, object).Create(t, object); len(problems) > 0 {
			t.Fatal(problems)
		}
		job := jobOf(t, object)
		if got := job.Spec.CreatedAs; got != want {
			t.Errorf("%s: the mark is %q, want %q", version, got, want)
		}
		if worker := job.Spec.Replicas["Worker"]; worker.Replicas != nil || worker.RestartPolicy != "" || job.Spec.RunPolicy.CleanPodPolicy != nil {
			t.Errorf("%s: defaults are written: %+v", version, job.Spec)
		}
	}
}

// TestTheRulesHaveTheTimeForTheLargestJob holds that no job is refused because it takes too
// long to look at.
func TestTheRulesHaveTheTimeForTheLargestJob(t *testing.T) {
	var containers []string
	for i := range kubeflowv1.MaxContainers - 1 {
		containers = append(containers, fmt.Sprintf("{name: %s%02d, image: i}", strings.Repeat("x", 61), i))
	}
	template := "template: {spec: {containers: [" + strings.Join(containers, ", ") + ", {name: tensorflow, image: i}]}}"
	var types []string
	for _, name := range []string{"Chief", "Worker", "PS", "Evaluator"} {
		types = append(types, name+": {replicas: 2500, "+template+"}")
	}
	object := objectOf(t, "", "", "", "{tfReplicaSpecs: {"+strings.Join(types, ", ")+"}}")
	validator := validatorOf(t, object)
	if problems := validator.Create(t, object); len(problems) > 0 {
		t.Errorf("creating it: %v", crd.Texts(problems))
	}
	if problems := validator.Update(t, runtime.DeepCopyJSON(object), object); len(problems) > 0 {
		t.Errorf("updating it: %v", crd.Texts(problems))
	}
	if problems := Validate(jobOf(t, object)); len(problems) > 0 {
		t.Errorf("Validate: %v", problems)
	}
}

// objectOf is a job as the API server gets it: by default, a TFJob j through v1.
func objectOf(t *testing.T, version, kind, name, spec string) map[string]any {
	t.Helper()
	if version == "" {
		version = "v1"
	}
	if kind == "" {
		kind = "TFJob"
	}
	if name == "" {
		name = "j"
	}
	container := cmp.Or(kindOf(&Job{TypeMeta: metav1.TypeMeta{Kind: kind}}, "").container, "mpi")
	template := fmt.Sprintf("template: {spec: {containers: [{name: %s, image: i}]}}", container)
	manifest := fmt.Sprintf("apiVersion: kubeflow.org/%s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", version, kind, name, strings.ReplaceAll(spec, "@t", template))
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// validatorOf finds what the API server finds wrong with objects of a kind and version.
func validatorOf(t *testing.T, object map[string]any) *crd.Validator {
	t.Helper()
	file := fmt.Sprintf("../../manifests/kubeflow/kubeflow.org_%ss.yaml", strings.ToLower(object["kind"].(string)))
	return crd.OfVersion(t, file, strings.TrimPrefix(object["apiVersion"].(string), "kubeflow.org/"))
}

// jobOf is a job as our clients read it.
func jobOf(t *testing.T, object map[string]any) *Job {
	t.Helper()
	data, err := utiljson.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	switch object["kind"] {
	case "PyTorchJob":
		job := decoded(t, data, &kubeflowv1.PyTorchJob{})
		return FromPyTorchJob(job.ObjectMeta, &job.Spec)
	case "XGBoostJob":
		job := decoded(t, data, &kubeflowv1.XGBoostJob{})
		return FromXGBoostJob(job.ObjectMeta, &job.Spec)
	case "PaddleJob":
		job := decoded(t, data, &kubeflowv1.PaddleJob{})
		return FromPaddleJob(job.ObjectMeta, &job.Spec)
	case "MPIJob":
		job := decoded(t, data, &kubeflowv2beta1.MPIJob{})
		return FromMPIJob(job.ObjectMeta, &job.Spec)
	case "JAXJob":
		job := decoded(t, data, &kubeflowv1.JAXJob{})
		return FromJAXJob(job.ObjectMeta, &job.Spec)
	default:
		job := decoded(t, data, &kubeflowv1.TFJob{})
		return FromTFJob(job.ObjectMeta, &job.Spec)
	}
}

// decoded is an object that was decoded into what is given.
func decoded[T any](t *testing.T, data []byte, into *T) *T {
	t.Helper()
	if err := utiljson.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
	return into
}
