// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func looksSecret(name string) bool { return strings.Contains(strings.ToLower(name), "secret") }

func TestMask(t *testing.T) {
	applied := func(text string) string { // in the annotation of kubectl apply
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,"a":"b"}}}`, corev1.LastAppliedConfigAnnotation, text)
	}
	tests := map[string]struct {
		data, want string // want is data if empty
	}{
		"a variable that looks like a secret, beside others": {
			data: `{"env":[{"name":"A","value":"1"},{"name":"MY_SECRET","value":"x"},{"name":"B","value":"2"}],"image":"i"}`,
			want: `{"env":[{"name":"A","value":"1"},{"name":"MY_SECRET","value":"***"},{"name":"B","value":"2"}],"image":"i"}`,
		},
		"in upper and lower case, and of any depth": {
			data: `{"spec":{"initContainers":[{"env":[{"name":"Secret1","value":"x"}]}],"ephemeralContainers":[{"env":[{"name":"secret2","value":"y"}]}]}}`,
			want: `{"spec":{"initContainers":[{"env":[{"name":"Secret1","value":"***"}]}],"ephemeralContainers":[{"env":[{"name":"secret2","value":"***"}]}]}}`,
		},
		"a value before its name": {
			data: `{"env":[{"value":"x","name":"SECRET"}]}`,
			want: `{"env":[{"value":"***","name":"SECRET"}]}`,
		},
		"a value with quotes, brackets and line breaks": {
			data: `{"env":[{"name":"SECRET","value":"a\"}],\\\n\u0022"},{"name":"A","value":"\\"}]}`,
			want: `{"env":[{"name":"SECRET","value":"***"},{"name":"A","value":"\\"}]}`,
		},
		"keys and names that are escaped": {
			data: `{"\u0065nv":[{"n\u0061me":"S\u0045CRET","v\u0061lue":"x"}]}`,
			want: `{"\u0065nv":[{"n\u0061me":"S\u0045CRET","v\u0061lue":"***"}]}`,
		},
		"a name that is given twice": {
			data: `{"env":[{"name":"SECRET","name":"A","value":"x","value":"y"}]}`,
			want: `{"env":[{"name":"SECRET","name":"A","value":"***","value":"***"}]}`,
		},
		"a value that is no string": {
			data: `{"env":[{"name":"SECRET","value":1234},{"name":"SECRET","value":{"env":[{"name":"SECRET","value":"x"}]}}]}`,
			want: `{"env":[{"name":"SECRET","value":"***"},{"name":"SECRET","value":"***"}]}`,
		},
		"values that hide nothing": {
			data: `{"env":[{"name":"SECRET","value":""},{"name":"SECRET","value":null},{"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}`,
		},
		"an environment that was written as a variable": {
			data: `{"env":{"name":"SECRET","value":"x"}}`,
			want: `{"env":{"name":"SECRET","value":"***"}}`,
		},
		"an environment that was written as an object": {
			data: `{"env":{"SECRET":"x","A":"1","OTHER_SECRET":2}}`,
			want: `{"env":{"SECRET":"***","A":"1","OTHER_SECRET":"***"}}`,
		},
		"an environment that was written as assignments": {
			data: `{"env":["SECRET=x=y","A=1","secret","SECRET="]}`,
			want: `{"env":["SECRET=***","A=1","secret","SECRET="]}`,
		},
		"lists in lists": {
			data: `{"env":[[{"name":"SECRET","value":"x"},["SECRET=y"]]]}`,
			want: `{"env":[[{"name":"SECRET","value":"***"},["SECRET=***"]]]}`,
		},
		"names and values elsewhere": {
			data: `{"volumes":[{"name":"secret","value":"x"}],"envFrom":[{"name":"secret","value":"x"}],"labels":{"env":"SECRET=x","name":"secret","value":"y"},"SECRET":"x"}`,
		},
		"what kubectl apply has noted": {
			data: applied(`{"spec":{"env":[{"name":"SECRET","value":"x<y"},{"name":"A","value":"é\u00e9<"}]}}` + "\n"),
			want: applied(`{"spec":{"env":[{"name":"SECRET","value":"***"},{"name":"A","value":"é\u00e9<"}]}}` + "\n"),
		},
		"what kubectl apply has noted, without a secret": {
			data: applied(`{"spec": {"env": [ {"name": "A", "value": "<x>"} ] } }`),
		},
		"what kubectl apply has noted, with spaces": {
			data: applied(" { \"env\" :\t[ { \"name\" : \"SECRET\" , \"value\" : \"x\" } , 1.5e3 , true ] , \"a\" : [ ] , \"b\" : { } } "),
			want: applied(" { \"env\" :\t[ { \"name\" : \"SECRET\" , \"value\" : \"***\" } , 1.5e3 , true ] , \"a\" : [ ] , \"b\" : { } } "),
		},
		"the annotation of kubectl apply without JSON in it": {
			data: applied("{env: [{name: SECRET, value: x"),
			want: applied("***"),
		},
		"an empty annotation of kubectl apply": {data: applied("")},
		"no object at all":                     {data: `"env"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = tc.data
			}
			got := string(mask([]byte(tc.data), looksSecret))
			if strings.Contains(tc.want, corev1.LastAppliedConfigAnnotation) {
				// How a string is escaped that is encoded anew does not matter.
				if diff := cmp.Diff(decoded(t, tc.want), decoded(t, got)); diff != "" {
					t.Errorf("mask (-want,+got):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("mask (-want,+got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, data string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		t.Fatalf("decoding %s: %v", data, err)
	}
	return value
}

// TestNothingMaskedCostsNoCopy: without a secret the data is not written anew.
func TestNothingMaskedCostsNoCopy(t *testing.T) {
	data := []byte(`{"env":[{"name":"A","value":"1"}],"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"env\":[]}\n"}}}`)
	if got := mask(data, looksSecret); &got[0] != &data[0] {
		t.Errorf("the data was copied to %s", got)
	}
}

// TestANestedEnvironmentIsMaskedInLittleMemory: each secret holds the next one, as deep
// as JSON may be nested.
func TestANestedEnvironmentIsMaskedInLittleMemory(t *testing.T) {
	const depth, mebibyte = 3000, 1 << 20
	pad := strings.Repeat(" ", mebibyte/depth)
	for name, tc := range map[string]struct{ begin, end, want string }{
		"as an object":   {`{"env":{"SECRET":`, `}}`, `{"env":{"SECRET":"***"}}`},
		"as variables":   {`{"env":[{"name":"SECRET","value":`, `}]}`, `{"env":[{"name":"SECRET","value":"***"}]}`},
		"without secret": {`{"env":[{"name":"A","value":`, `}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(strings.Repeat(tc.begin+pad, depth) + `"x"` + strings.Repeat(tc.end, depth))
			if !json.Valid(data) {
				t.Fatal("the data is no JSON")
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := mask(data, looksSecret)
			runtime.ReadMemStats(&after)
			if tc.want == "" {
				tc.want = string(data)
			}
			tc.want = strings.ReplaceAll(tc.want, `:"***"`, `:`+pad+`"***"`)
			if string(got) != tc.want {
				t.Errorf("%d bytes are masked to %.100s, want %.100s", len(data), got, tc.want)
			}
			if most := uint64(16 * len(data)); after.TotalAlloc-before.TotalAlloc > most {
				t.Errorf("%d bytes cost %d, want at most %d", len(data), after.TotalAlloc-before.TotalAlloc, most)
			}
		})
	}
}

// TestMaskDoesWhatIsSlowAndPlain compares, for random JSON, with masking what was
// decoded.
func TestMaskDoesWhatIsSlowAndPlain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	masked := 0
	for range 20_000 {
		value := map[string]any{"env": randomValue(random, 6), "spec": randomValue(random, 6)}
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got := decoded(t, string(mask(data, looksSecret)))
		want := maskPlainly(decoded(t, string(data)), elsewhere)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("mask of %s (-want,+got):\n%s", data, diff)
		}
		if !cmp.Equal(want, decoded(t, string(data))) {
			masked++
		}
	}
	if masked < 1000 {
		t.Errorf("only %d of 20000 values held a secret: the test shows little", masked)
	}
}

func randomValue(random *rand.Rand, depth int) any {
	kinds := 8
	if depth == 0 {
		kinds = 5
	}
	switch random.IntN(kinds) {
	case 0:
		return []any{nil, true, 1.5, ""}[random.IntN(4)]
	case 1, 2, 3, 4:
		return []string{"SECRET", "SECRET=x=y", "x", `]}"\`, "<é>\n"}[random.IntN(5)]
	case 5:
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range random.IntN(5) {
			value := randomValue(random, depth-1)
			key := []string{"env", "env", "name", "value", "SECRET", corev1.LastAppliedConfigAnnotation}[random.IntN(6)]
			if key == corev1.LastAppliedConfigAnnotation && random.IntN(4) > 0 {
				text, err := json.Marshal(value)
				if err != nil {
					panic(err)
				}
				value = string(text)
			}
			object[key] = value
		}
		return object
	}
}

// maskPlainly masks what was decoded.
func maskPlainly(value any, at place) any {
	switch value := value.(type) {
	case []any:
		if at == environment {
			at = variable
		}
		for i := range value {
			name, assigned, ok := strings.Cut(fmt.Sprint(value[i]), "=")
			if _, isText := value[i].(string); isText && at == variable && ok && assigned != "" && looksSecret(name) {
				value[i] = name + "=***"
				continue
			}
			value[i] = maskPlainly(value[i], at)
		}
	case map[string]any:
		name, _ := value["name"].(string)
		for key, member := range value {
			inside := elsewhere
			if key == "env" {
				inside = environment
			}
			secret := at == environment && looksSecret(key) || at != elsewhere && key == "value" && looksSecret(name)
			text, isText := member.(string)
			var applied any
			switch {
			case secret && member != nil && member != "":
				value[key] = "***"
			case key == corev1.LastAppliedConfigAnnotation && isText && text != "":
				value[key] = "***"
				if json.Unmarshal([]byte(text), &applied) == nil {
					before, _ := json.Marshal(applied)
					after, _ := json.Marshal(maskPlainly(applied, elsewhere))
					value[key] = text
					if string(before) != string(after) {
						value[key] = string(after)
					}
				}
			default:
				value[key] = maskPlainly(member, inside)
			}
		}
	}
	return value
}
