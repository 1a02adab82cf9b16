// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"strings"
	"testing"
)

const forEver = "1.0000000000000000001e2000000000"

func TestQuantitiesThatWouldTakeForEverAreRefused(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"a limit":                 {`{"spec":{"containers":[{"resources":{"limits":{"cpu":"` + forEver + `"}}}]}}`, "spec.containers[0].resources.limits.cpu: must be a quantity with an exponent from -999 to 999"},
		"a number":                {`{"spec":{"overhead":{"cpu":1e20000}}}`, "spec.overhead.cpu: must be"},
		"a small one":             {`{"resources":{"requests":{"storage":"1E-20000"}}}`, "resources.requests.storage: must be"},
		"with a sign":             {`{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"1e+20000"}}]}}`, "spec.volumes[0].emptyDir.sizeLimit: must be"},
		"in escapes":              {`{"limits":{"cpu":"1\u006520000"}}`, "limits.cpu: must be"},
		"with a blank":            {`{"limits":{"cpu":" 1e20000 "}}`, "limits.cpu: must be"},
		"a divisor":               {`{"env":[{"valueFrom":{"resourceFieldRef":{"divisor":"1e20000"}}}]}`, "env[0].valueFrom.resourceFieldRef.divisor: must be"},
		"twice":                   {`{"limits":{"cpu":"1e20000","cpu":"1"}}`, "limits.cpu: must be"},
		"twice, as another field": {`{"limits":{"cpu":"1e20000"},"limits":{}}`, "limits.cpu: must be"},
		"in capitals":             {`{"Limits":{"cpu":"1e20000"}}`, "Limits.cpu: must be"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := CheckJSON([]byte(tc.template)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestEverythingElseIsLeftToWhoReadsIt(t *testing.T) {
	for name, template := range map[string]string{
		"usual quantities":                    `{"limits":{"cpu":"1e3","memory":"1Gi","a":12,"b":"1e-999"}}`,
		"the digest of an image":              `{"image":"a@sha256:9e12345","limits":{"cpu":"1"}}`,
		"a long exponent that is no quantity": `{"env":[{"name":"a","value":"1e20000"}]}`,
		"escapes":                             `{"args":["\u0065"]}`,
		"no JSON":                             `{"limits":{"cpu":"1e20000"`,
		"nothing":                             ``,
		"an e at the end":                     `{"a":"e"}e`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := CheckJSON([]byte(template)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestQuantitiesOfMetrics(t *testing.T) {
	for metric, want := range map[string]string{
		`{"resource":{"target":{"averageValue":"1.0000000000000000001e2000000000"}}}`: "resource.target.averageValue: must be",
		`{"external":{"target":{"Value":1e20000}}}`:                                   "external.target.Value: must be",
		`{"pods":{"target":{"averageValue":"1e3"}}}`:                                  "",
	} {
		if err := CheckMetric([]byte(metric)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", metric, err, want)
		}
	}
}
