package ruleserver

import (
	"encoding/base64"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// The headers of ORCA (Open Request Cost Aggregation), by which a server tells its
// load in a form that Envoy, gRPC and others read.
const (
	orcaHeader       = "Endpoint-Load-Metrics"        // of the response; the value begins with TEXT or JSON
	orcaBinaryHeader = "Endpoint-Load-Metrics-Bin"    // of the response; xds.data.orca.v3.OrcaLoadReport in base64
	orcaFormatHeader = "Endpoint-Load-Metrics-Format" // of the request, which asks for a report with it
)

// The forms of an ORCA report.
const (
	orcaOff  = "off"
	orcaText = "text"
	orcaJSON = "json"
	orcaBin  = "bin"
)

func orcaFormats() []string { return []string{orcaOff, orcaText, orcaJSON, orcaBin} }

// orca says which report a response carries, and where. The zero orca is none.
type orca struct {
	format  string
	trailer bool // after the body, as gRPC has it
}

// orcaOf is the report that the request asks for, else that of the settings. With
// "TE: trailers" in the request, it goes in the trailer.
func (s *Server) orcaOf(request http.Header) orca {
	report := orca{s.settings.ORCA, s.settings.ORCATrailer}
	if asked := strings.ToLower(request.Get(orcaFormatHeader)); slices.Contains(orcaFormats(), asked) {
		report.format = asked
	}
	if quality(request.Get("TE"), "trailers") > 0 {
		report.trailer = true
	}
	return report
}

// header is the header of the report; "" when there is no report.
func (o orca) header() string {
	switch o.format {
	case orcaText, orcaJSON:
		return orcaHeader
	case orcaBin:
		return orcaBinaryHeader
	}
	return ""
}

// set adds the report to a header or trailer.
func (o orca) set(to http.Header, load figures, job executor.Facts) {
	m := measure(load, job)
	switch o.format {
	case orcaText:
		to.Set(orcaHeader, "TEXT "+m.text())
	case orcaJSON:
		to.Set(orcaHeader, "JSON "+m.json())
	case orcaBin:
		to.Set(orcaBinaryHeader, base64.StdEncoding.EncodeToString(m.binary()))
	}
}

// measures are the contents of a report.
type measures struct {
	cpu         float64 // busy cores over cores
	application float64 // joblets that run or are stalled over cores: over 1 when the server is overloaded
	named       []namedFigure
}

func measure(load figures, job executor.Facts) measures {
	return measures{
		cpu:         load.busy / load.cores,
		application: (load.busy + load.allStalled()) / load.cores,
		named:       namedFigures(load, job),
	}
}

func (m measures) text() string {
	text := "cpu_utilization=" + number(m.cpu) + ", application_utilization=" + number(m.application)
	for _, one := range m.named {
		text += ", named_metrics." + one.name + "=" + number(one.value)
	}
	return text
}

func (m measures) json() string {
	text := `{"cpu_utilization":` + jsonNumber(m.cpu) + `,"application_utilization":` + jsonNumber(m.application) + `,"named_metrics":{`
	for i, one := range m.named {
		if i > 0 {
			text += ","
		}
		text += strconv.Quote(one.name) + ":" + jsonNumber(one.value)
	}
	return text + "}}"
}

// jsonNumber writes NaN as a string, as the JSON form of protobuf does.
func jsonNumber(x float64) string {
	if math.IsNaN(x) {
		return strconv.Quote(number(x))
	}
	return number(x)
}

// binary is the report as a protobuf message. It is written by hand: the generated
// type would add two modules for these few lines.
func (m measures) binary() []byte {
	const cpuField, namedField, applicationField = 1, 8, 9 // of OrcaLoadReport
	const keyField, valueField = 1, 2                      // of an entry of a map
	double := func(to []byte, field protowire.Number, x float64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(to, field, protowire.Fixed64Type), math.Float64bits(x))
	}
	text := double(nil, cpuField, m.cpu)
	for _, one := range m.named {
		entry := protowire.AppendString(protowire.AppendTag(nil, keyField, protowire.BytesType), one.name)
		entry = double(entry, valueField, one.value)
		text = protowire.AppendBytes(protowire.AppendTag(text, namedField, protowire.BytesType), entry)
	}
	return double(text, applicationField, m.application)
}
