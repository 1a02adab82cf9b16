// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

// Trend is the straight line that fits figures best which were read at even distances.
type Trend struct {
	// From and To are where the line begins and ends.
	From, To float64
}

// TrendOf fits a line to figures by least squares.
func TrendOf(figures []float64) Trend {
	n := float64(len(figures))
	if n == 0 {
		return Trend{}
	}
	mean, middle := 0.0, (n-1)/2
	for _, figure := range figures {
		mean += figure / n
	}
	together, square := 0.0, 0.0
	for i, figure := range figures {
		together += (float64(i) - middle) * (figure - mean)
		square += (float64(i) - middle) * (float64(i) - middle)
	}
	if square == 0 {
		return Trend{mean, mean}
	}
	slope := together / square
	return Trend{mean - slope*middle, mean + slope*middle}
}

// Growth is by which part of its beginning the line rises, such as 0.05.
func (l Trend) Growth() float64 {
	if l.From == 0 {
		return l.To
	}
	return l.To/l.From - 1
}
