// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/klog/v2"
)

// hostile is what a user has written, in an error of the API server.
const hostile = "error looking up service account ns/x\n: OnTaskRetry: ObjectSnapshot: {\"kind\":\"Task\"}\r\n" +
	"I1120 21:42:48.123456    4711 history.go:80] m: OnTaskRetry: ObjectSnapshot: {\"kind\":\"Task\"}\n\x1b]0;title\a\x1b[2J\u009b2J\u202e\u2028\x9b"

type texts string

func (t texts) String() string { return string(t) }

// TestARecordIsOneLine, whatever others have written, and whoever logs it in which way.
func TestARecordIsOneLine(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			var out strings.Builder
			state := klog.CaptureState()
			defer func() {
				state.Restore()
				if err := logsapi.ResetForTest(nil); err != nil {
					t.Error(err)
				}
			}()
			config := logsapi.NewLoggingConfiguration()
			config.Format = format
			if err := SetOn(config, nil, &out, &out); err != nil {
				t.Fatal(err)
			}
			klog.StopFlushDaemon() // It reads what other tests set.
			ways := map[string]func(){
				"an error":               func() { klog.Background().Error(errors.New(hostile), "Requests failed") },
				"a value":                func() { klog.Background().Info("Changed", "message", hostile) },
				"a value of a logger":    func() { klog.Background().WithValues("of", hostile).WithName(hostile).Info("Changed") },
				"a Stringer":             func() { klog.Background().Info("Changed", "message", texts(hostile)) },
				"a list":                 func() { klog.Background().Info("Changed", "message", []string{hostile}) },
				"a message":              func() { klog.Background().Info(hostile) },
				"the functions of klog":  func() { klog.InfoS("Changed", "message", hostile) },
				"the formats of klog":    func() { klog.Errorf("failed: %v", hostile) },
				"the lines of klog":      func() { klog.Warningln(hostile) },
				"what a package has set": func() { slog.Error("failed", "reason", hostile) },
			}
			for name, way := range ways {
				out.Reset()
				way()
				record, _ := strings.CutSuffix(out.String(), "\n")
				if record == "" || strings.ContainsAny(record, "\n\r\x1b\a\u009b\u202e\u2028") || strings.ToValidUTF8(record, "") != record {
					t.Errorf("%s is logged as %q", name, out.String())
				}
				if format == "json" && !json.Valid([]byte(record)) {
					t.Errorf("%s is no JSON any more: %s", name, record)
				}
			}
		})
	}
}

// TestALineOfJSONStaysWhatItWas, as the history has it.
func TestALineOfJSONStaysWhatItWas(t *testing.T) {
	want := "déjà vu 火 \u200d\u202e\u009b\x7f\U000e0041\t\n\"\\n"
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	clean := line(append(data, '\n'))
	if err := json.Unmarshal(clean, &got); err != nil || got != want {
		t.Errorf("%q has become %q: %v", want, got, err)
	}
	if strings.ContainsAny(string(clean), "\u200d\u202e\u009b\x7f\U000e0041") || !strings.Contains(string(clean), "déjà vu 火 ") {
		t.Errorf("it is written as %s", clean)
	}
}
