package report

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// The headers of ORCA (Open Request Cost Aggregation), by which servers tell Envoy,
// gRPC and others their load. The value begins with TEXT, JSON or BIN, but some
// servers leave that out.
const (
	orcaHeader       = "Endpoint-Load-Metrics"
	orcaBinaryHeader = "Endpoint-Load-Metrics-Bin" // xds.data.orca.v3.OrcaLoadReport in base64
)

// maxORCABytes bounds one load report.
const maxORCABytes = 8 << 10

// ORCA says how load reports in the form of ORCA are read. They come on responses
// to jobs, in the header or in the trailer. A response that has X-Load is read by
// that alone.
type ORCA struct {
	// Ask is the form in which each job asks its upstream for a report: text, json
	// or bin. Without it, only reports that come unasked are read.
	Ask string `yaml:"ask"`
	// Running is the named metric that counts the jobs that run, the job itself
	// included; empty is none.
	Running string `yaml:"running"`
	// Stalled is the named metric that counts the joblets, or the jobs, that wait;
	// empty is none.
	Stalled string `yaml:"stalled"`
}

func (o ORCA) check(f *settings.Faults) {
	if o.Ask != "" {
		f.OneOf("ask", o.Ask, []string{"text", "json", "bin"})
	}
	if o.Running == o.Stalled && o.Running != "" {
		f.Add("stalled", "%q is reports.orca.running already", o.Stalled)
	}
}

// orcaReport is the figures of a load report that pilotfish knows.
type orcaReport struct {
	cpu, application float64 // -1 is not told
	named            hintFields
	names            ORCA
}

// read reads a load report out of a header or a trailer.
func (o ORCA) read(h http.Header, now time.Time) (pool.Hint, bool) {
	r := orcaReport{cpu: -1, application: -1, named: noFields(), names: o}
	ok := false
	switch text, binary := h[orcaHeader], h[orcaBinaryHeader]; {
	case len(text) == 1 && len(text[0]) <= maxORCABytes:
		ok = r.readHeader(strings.TrimSpace(text[0]))
	case len(text) == 0 && len(binary) == 1 && len(binary[0]) <= maxORCABytes:
		ok = r.readBinary(binary[0])
	}
	if !ok {
		return pool.Hint{}, false
	}
	return r.hint(now)
}

// hint is the report as a hint. Where it does not tell the counts, it must tell
// the utilization.
func (r *orcaReport) hint(now time.Time) (pool.Hint, bool) {
	utilization := r.application
	if utilization < 0 {
		utilization = r.cpu
	}
	if r.named.running < 0 && r.named.stalled < 0 && utilization < 0 {
		return pool.Hint{}, false
	}
	return r.named.hint(now, utilization)
}

// maxUtilization bounds a share of the cores that is believed: an upstream may be
// overloaded.
const maxUtilization = 1e6

// set takes a figure by its name, and reports whether it makes sense. Names that
// pilotfish does not know are passed over.
func (r *orcaReport) set(name string, value float64) bool {
	metric, named := strings.CutPrefix(name, "named_metrics.")
	named = named && metric != "" // a setting that is empty names no metric
	var to *float64
	most := float64(maxUtilization)
	switch {
	case name == "cpu_utilization" || name == "cpuUtilization":
		to = &r.cpu
	case name == "application_utilization" || name == "applicationUtilization":
		to = &r.application
	case named && metric == r.names.Running:
		to, most = &r.named.running, maxCount
	case named && metric == r.names.Stalled:
		to, most = &r.named.stalled, maxCount
	case named && metric != "running" && metric != "stalled" && metric != "at":
		to, most = r.named.field(metric)
	}
	if to == nil {
		return true
	}
	*to = value
	return value >= 0 && value <= most
}

// readHeader reads the forms that are text.
func (r *orcaReport) readHeader(text string) bool {
	if form, rest, ok := strings.Cut(text, " "); ok {
		switch strings.ToUpper(form) {
		case "TEXT":
			return r.readText(rest)
		case "JSON":
			return r.readJSON(rest)
		case "BIN":
			return r.readBinary(rest)
		}
	}
	if strings.HasPrefix(text, "{") {
		return r.readJSON(text)
	}
	return r.readText(text)
}

// readText reads name=value, name=value. Older Envoys take name:value.
func (r *orcaReport) readText(text string) bool {
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		i := strings.LastIndexByte(pair, '=')
		if i < 0 {
			i = strings.LastIndexByte(pair, ':')
		}
		if i <= 0 {
			return false
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(pair[i+1:]), 64)
		if err != nil || !r.set(strings.TrimSpace(pair[:i]), value) {
			return false
		}
	}
	return true
}

// readJSON reads the JSON form of the message. Names may be as in the message or
// in camel case; numbers may be texts, as JSON has no infinity.
func (r *orcaReport) readJSON(text string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		return false
	}
	for name, value := range members {
		if name != "named_metrics" && name != "namedMetrics" {
			if !r.setJSON(name, value) {
				return false
			}
			continue
		}
		var metrics map[string]json.RawMessage
		if json.Unmarshal(value, &metrics) != nil {
			return false
		}
		for metric, value := range metrics {
			if !r.setJSON("named_metrics."+metric, value) {
				return false
			}
		}
	}
	return true
}

func (r *orcaReport) setJSON(name string, value json.RawMessage) bool {
	number, err := strconv.ParseFloat(strings.Trim(string(value), `"`), 64)
	return err != nil && !r.knows(name) || err == nil && r.set(name, number)
}

// knows reports whether a name is one of those that set takes: it takes none below 0.
func (r *orcaReport) knows(name string) bool {
	probe := *r
	return !probe.set(name, -1)
}

// Fields of xds.data.orca.v3.OrcaLoadReport, and of an entry of its maps.
const (
	cpuField, namedField, applicationField = 1, 8, 9
	keyField, valueField                   = 1, 2
)

// readBinary reads the message itself, in base64.
func (r *orcaReport) readBinary(text string) bool {
	message, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(text), "="))
	if err != nil {
		return false
	}
	return eachField(message, func(field protowire.Number, number float64, bytes []byte) bool {
		switch field {
		case cpuField:
			return r.set("cpu_utilization", number)
		case applicationField:
			return r.set("application_utilization", number)
		case namedField:
			return r.readEntry(bytes)
		}
		return true
	})
}

// readEntry reads an entry of the map of named metrics.
func (r *orcaReport) readEntry(entry []byte) bool {
	name, value := "", 0.0
	whole := eachField(entry, func(field protowire.Number, number float64, bytes []byte) bool {
		switch field {
		case keyField:
			name = string(bytes)
		case valueField:
			value = number
		}
		return true
	})
	return whole && r.set("named_metrics."+name, value)
}

// eachField calls take with the fields of a message that are doubles or bytes. It
// reports whether the message is well-formed and take returned true each time.
func eachField(message []byte, take func(field protowire.Number, number float64, bytes []byte) bool) bool {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		var number float64
		var bytes []byte
		switch kind {
		case protowire.Fixed64Type:
			bits, size := protowire.ConsumeFixed64(message)
			number, n = math.Float64frombits(bits), size
		case protowire.BytesType:
			bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 || !take(field, number, bytes) {
			return false
		}
		message = message[n:]
	}
	return true
}
