// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand"
)

// sample is a point of the plane and the arm of the spiral that it is on.
type sample struct {
	x, y float64
	arm  float64 // 0 or 1
}

// spiral makes n points on two entwined spirals, which no straight line parts.
// Each seed makes other points.
func spiral(n int, seed int64) []sample {
	random := rand.New(rand.NewSource(seed))
	samples := make([]sample, n)
	for i := range samples {
		arm := float64(i % 2)
		t := random.Float64()
		angle := 2.5*math.Pi*t + math.Pi*arm
		radius := 0.2 + 0.8*t
		samples[i] = sample{
			x:   radius*math.Cos(angle) + 0.03*random.NormFloat64(),
			y:   radius*math.Sin(angle) + 0.03*random.NormFloat64(),
			arm: arm,
		}
	}
	return samples
}

// hidden is the width of the model's only hidden layer.
const hidden = 32

// model is a perceptron with one hidden layer, trained by gradient descent with
// momentum. Its parameters are one vector, so that gradients can be exchanged
// as one: for each hidden unit two weights, a bias and an output weight, then
// the output bias.
type model struct {
	parameters []float64
	velocity   []float64
}

func newModel(seed int64) *model {
	random := rand.New(rand.NewSource(seed))
	m := &model{parameters: make([]float64, 4*hidden+1), velocity: make([]float64, 4*hidden+1)}
	for i := range m.parameters {
		m.parameters[i] = random.NormFloat64()
	}
	return m
}

// gradient sums, over all samples, the gradient of the cross-entropy loss, the
// loss itself, and the number of right answers.
func (m *model) gradient(samples []sample) (gradient []float64, loss, correct float64) {
	p := m.parameters
	gradient = make([]float64, len(p))
	var activation [hidden]float64
	for _, s := range samples {
		logit := p[4*hidden]
		for h := range hidden {
			activation[h] = math.Tanh(p[4*h]*s.x + p[4*h+1]*s.y + p[4*h+2])
			logit += p[4*h+3] * activation[h]
		}
		probability := 1 / (1 + math.Exp(-logit))
		if (probability > 0.5) == (s.arm == 1) {
			correct++
		}
		loss -= s.arm*math.Log(probability+1e-12) + (1-s.arm)*math.Log(1-probability+1e-12)

		delta := probability - s.arm
		gradient[4*hidden] += delta
		for h := range hidden {
			gradient[4*h+3] += delta * activation[h]
			back := delta * p[4*h+3] * (1 - activation[h]*activation[h])
			gradient[4*h] += back * s.x
			gradient[4*h+1] += back * s.y
			gradient[4*h+2] += back
		}
	}
	return gradient, loss, correct
}

// step moves the parameters against the gradient, which is a sum over n
// samples.
func (m *model) step(gradient []float64, n float64) {
	const rate, momentum = 0.1, 0.9
	for i := range m.parameters {
		m.velocity[i] = momentum*m.velocity[i] - rate*gradient[i]/n
		m.parameters[i] += m.velocity[i]
	}
}
