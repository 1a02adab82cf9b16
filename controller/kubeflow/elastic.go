// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/json"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// metricsOf reads the metrics of an elasticPolicy. The error says which of them makes no
// sense.
func metricsOf(policy *kubeflowv1.ElasticPolicy) ([]autoscalingv2.MetricSpec, error) {
	var metrics []autoscalingv2.MetricSpec
	for i := range policy.Metrics {
		metric := autoscalingv2.MetricSpec{}
		if err := json.Unmarshal(policy.Metrics[i].Raw, &metric); err != nil {
			return nil, fmt.Errorf("element %d is no metric of autoscaling/v2: %w", i, err)
		}
		metrics = append(metrics, metric)
	}
	return metrics, nil
}
