// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/quantity"
)

// bounds returns the fewest and the most workers of an elastic job.
func bounds(elastic *kubeflowv1.ElasticPolicy, worker *replicaType) (fewest, most int32) {
	fewest = ptr.Deref(elastic.MinReplicas, ptr.Deref(elastic.MaxReplicas, worker.number))
	return fewest, ptr.Deref(elastic.MaxReplicas, fewest)
}

// autoscaler scales the workers of a job by metrics. Nil if there is none.
func (b *builder) autoscaler(start int32) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	elastic := b.job.Spec.ElasticPolicy
	if elastic == nil || len(elastic.Metrics) == 0 {
		return nil, nil
	}
	metrics, err := metricsOf(elastic)
	if err != nil {
		return nil, err
	}
	fewest, most := bounds(elastic, typeIn(b.types, kubeflowv1.ReplicaWorker))
	scaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: b.metadata(b.job.Name, start),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: b.kind.gvk.GroupVersion().String(), Kind: b.kind.gvk.Kind, Name: b.job.Name},
			MinReplicas:    &fewest,
			MaxReplicas:    most,
			Metrics:        metrics,
		},
	}
	said, err := json.Marshal(scaler.Spec)
	if err != nil {
		return nil, err
	}
	scaler.Labels = b.jobLabels()
	scaler.Annotations[KeyContent] = digestOf(string(said))
	return scaler, nil
}

// Bounds of the metrics of a job: their number, as in the CRD, and the bytes of each.
const (
	maxMetrics     = 32
	maxMetricBytes = 16 << 10
)

// metricsOf decodes the metrics of an elasticPolicy. The error names a metric that is invalid, or that would take for
// ever to decode.
func metricsOf(elastic *kubeflowv1.ElasticPolicy) ([]autoscalingv2.MetricSpec, error) {
	if n := len(elastic.Metrics); n > maxMetrics {
		return nil, fmt.Errorf("must have at most %d elements, has %d", maxMetrics, n)
	}
	var metrics []autoscalingv2.MetricSpec
	for i := range elastic.Metrics {
		if n := len(elastic.Metrics[i].Raw); n > maxMetricBytes {
			return nil, fmt.Errorf("element %d must have at most %d bytes, has %d", i, maxMetricBytes, n)
		}
		if err := quantity.CheckMetric(elastic.Metrics[i].Raw); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		metric := autoscalingv2.MetricSpec{}
		if err := json.Unmarshal(elastic.Metrics[i].Raw, &metric); err != nil {
			return nil, fmt.Errorf("element %d is no metric of autoscaling/v2: %w", i, err)
		}
		metrics = append(metrics, metric)
	}
	return metrics, nil
}
