// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/text"
)

// Columns are the names of the columns of a CSV file.
type Columns struct {
	// Submit names the column with the time of creation, in seconds or in one of the formats that ReadCSV names.
	// Interval names, in its place, a column with the seconds since the previous line's job.
	Submit, Interval string
	// Runtime and Limit are seconds, and unknown where a field is empty or negative. Limit may be empty: no limits are
	// known.
	Runtime, Limit string
	// Units is what all Pods of the job ask for together. A fraction is rounded up.
	Units string
	// Owner may be empty.
	Owner string
}

// ParseColumns parses "submit=timestamp,runtime=duration,units=num_gpus,owner=cluster": what is needed, and in which
// column it is.
func ParseColumns(text string) (Columns, error) {
	if text == "" {
		return Columns{}, errors.New("a CSV file needs it: it says which columns have what")
	}
	var c Columns
	fields := map[string]*string{"submit": &c.Submit, "interval": &c.Interval, "runtime": &c.Runtime, "limit": &c.Limit, "units": &c.Units, "owner": &c.Owner}
	for pair := range strings.SplitSeq(text, ",") {
		name, column, ok := strings.Cut(pair, "=")
		field := fields[strings.TrimSpace(name)]
		if !ok || field == nil {
			return Columns{}, fmt.Errorf("%q: want NAME=COLUMN, and NAME is one of submit, interval, runtime, limit, units, owner", pair)
		}
		*field = strings.TrimSpace(column)
	}
	if (c.Submit == "") == (c.Interval == "") || c.Runtime == "" || c.Units == "" {
		return Columns{}, errors.New("runtime, units and one of submit and interval are required")
	}
	return c, nil
}

// timeForms are the forms of times that ReadCSV takes, besides seconds.
var timeForms = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006/01/02 15:04:05"}

// ReadCSV reads a file whose first line names the columns. A job with more units than a node has gets Pods that each
// fill a node. ReadCSV skips jobs without a run time, and jobs without units, such as jobs that use no GPU.
func ReadCSV(r io.Reader, columns Columns, perNode int) (Trace, error) {
	reader := csv.NewReader(r)
	header, err := reader.Read()
	if err != nil {
		return Trace{}, fmt.Errorf("reading the names of columns: %w", err)
	}
	at := map[string]int{}
	for i, name := range header {
		at[strings.TrimSpace(name)] = i
	}
	for _, column := range []string{columns.Submit, columns.Interval, columns.Runtime, columns.Limit, columns.Units, columns.Owner} {
		if _, ok := at[column]; column != "" && !ok {
			return Trace{}, fmt.Errorf("there is no column %q; the columns are %q", column, text.Shorten(strings.Join(header, ", "), 500))
		}
	}
	trace := Trace{Units: perNode}
	var now float64
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return trace, nil
		}
		if err != nil {
			return Trace{}, fmt.Errorf("reading: %w", err)
		}
		n, _ := reader.FieldPos(0)
		var failed error
		read := func(column string, parse func(string) (float64, error)) float64 {
			if column == "" {
				return 0
			}
			value, err := parse(row[at[column]])
			if err != nil && failed == nil {
				failed = fmt.Errorf("line %d, column %s: %w", n, column, err)
			}
			return value
		}
		job := Job{Name: strconv.Itoa(n), Runtime: seconds(read(columns.Runtime, optional)), Limit: limit(max(0, read(columns.Limit, optional)))}
		units := int(math.Ceil(read(columns.Units, optional)))
		now += read(columns.Interval, number)
		job.Submit = seconds(now)
		skips := units <= 0 || job.Runtime < 0
		if columns.Submit != "" && !skips {
			job.Submit = seconds(read(columns.Submit, instant))
		}
		if failed != nil {
			return Trace{}, failed
		}
		if skips {
			trace.Skipped++
			continue
		}
		if columns.Owner != "" {
			job.Owner = row[at[columns.Owner]]
		}
		job.Split(units, perNode)
		trace.Jobs = append(trace.Jobs, job)
	}
}

// most is the largest number that a trace may have. As seconds since 1970 it is in the year 2096.
const most = 4e9

// number parses a number of a trace.
func number(text string) (float64, error) {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", text)
	}
	if !(math.Abs(value) <= most) { // nor is it NaN
		return 0, fmt.Errorf("%q must be from -4e9 to 4e9", text)
	}
	return value, nil
}

// optional parses a number of a trace, and returns -1 for an empty field.
func optional(text string) (float64, error) {
	if strings.TrimSpace(text) == "" {
		return -1, nil
	}
	return number(text)
}

// instant returns a number of seconds, or the seconds since 1970 at a time.
func instant(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return number(text)
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, text); err == nil {
			return float64(t.Unix()), nil
		}
	}
	return 0, fmt.Errorf("%q is neither a number of seconds nor a time such as 2017-10-09 07:01:55", text)
}
