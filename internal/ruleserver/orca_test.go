package ruleserver

import (
	"encoding/base64"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// loadReport is an empty xds.data.orca.v3.OrcaLoadReport, with the fields that the
// server sends.
func loadReport(t *testing.T) *dynamicpb.Message {
	t.Helper()
	file := new(descriptorpb.FileDescriptorProto)
	require.NoError(t, prototext.Unmarshal([]byte(`
		name: "orca.proto" package: "xds.data.orca.v3" syntax: "proto3"
		message_type {
			name: "OrcaLoadReport"
			field {name: "cpu_utilization" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL}
			field {name: "application_utilization" number: 9 type: TYPE_DOUBLE label: LABEL_OPTIONAL}
			field {name: "named_metrics" number: 8 type: TYPE_MESSAGE label: LABEL_REPEATED
			       type_name: ".xds.data.orca.v3.OrcaLoadReport.NamedMetricsEntry"}
			nested_type {
				name: "NamedMetricsEntry" options {map_entry: true}
				field {name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL}
				field {name: "value" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL}
			}
		}`), file))
	descriptor, err := protodesc.NewFile(file, nil)
	require.NoError(t, err)
	return dynamicpb.NewMessage(descriptor.Messages().Get(0))
}

func TestORCAForms(t *testing.T) {
	load := figures{cores: 16, busy: 12, running: [2]float64{2, 10}, stalled: [2]float64{1, 3}}
	job := executor.Facts{Started: true, Cached: true, Wait: 4 * time.Millisecond, Fetch: 1900 * time.Millisecond}
	write := func(format string, load figures, job executor.Facts) string {
		header, report := http.Header{}, orca{format: format}
		report.set(header, load, job)
		value := header.Get(report.header())
		header.Del(report.header())
		assert.Empty(t, header, "there is no other header")
		return value
	}
	const want = `{"cpu_utilization":0.75,"application_utilization":1,"named_metrics":` +
		`{"running":12,"stalled":4,"stalled_high":1,"cores":16,"cached":1,"waited":0.004,"fetch":1.9}}`

	assert.Equal(t, "TEXT cpu_utilization=0.75, application_utilization=1, named_metrics.running=12, named_metrics.stalled=4, "+
		"named_metrics.stalled_high=1, named_metrics.cores=16, named_metrics.cached=1, named_metrics.waited=0.004, named_metrics.fetch=1.9",
		write("text", load, job))
	assert.Equal(t, "JSON "+want, write("json", load, job))
	assert.Equal(t, `JSON {"cpu_utilization":0.75,"application_utilization":1,"named_metrics":{"running":12,"stalled":4,"stalled_high":1,"cores":16}}`,
		write("json", load, executor.Facts{}), "a job that has not started")
	assert.Empty(t, write("off", load, job))

	binary, err := base64.StdEncoding.DecodeString(write("bin", load, job))
	require.NoError(t, err)
	got := loadReport(t)
	require.NoError(t, proto.Unmarshal(binary, got))
	assert.Empty(t, got.GetUnknown())
	expected := got.New().Interface()
	require.NoError(t, protojson.Unmarshal([]byte(want), expected))
	assert.True(t, proto.Equal(expected, got), "want %v, got %v", expected, got)

	load.stalled[executor.Low] = math.NaN()
	assert.NoError(t, protojson.Unmarshal([]byte(strings.TrimPrefix(write("json", load, job), "JSON ")), loadReport(t)),
		"JSON is JSON also when the server lies")
}

// TestORCAIsSentWhenAsked: by the request or by the settings, in the header or in
// the trailer.
func TestORCAIsSentWhenAsked(t *testing.T) {
	for name, c := range map[string]struct {
		format          string // of the settings
		inTrailer       bool   // by the settings
		ask, te         string // of the request
		header, trailer string // what the values begin with
	}{
		"nobody asks":                      {"off", false, "", "", "", ""},
		"the request":                      {"off", false, "text", "", "TEXT cpu_utilization=", ""},
		"the request, in capitals":         {"off", false, "JSON", "", `JSON {"cpu_utilization":`, ""},
		"the request, for what is unknown": {"off", false, "xml", "", "", ""},
		"the settings":                     {"json", false, "", "", `JSON {"cpu_utilization":`, ""},
		"the request wins":                 {"json", false, "text", "", "TEXT cpu_utilization=", ""},
		"the request wants none":           {"json", false, "off", "", "", ""},
		"trailer by the request":           {"off", false, "text", "trailers, deflate;q=0.5", "", "TEXT cpu_utilization="},
		"trailer by the settings":          {"text", true, "", "", "", "TEXT cpu_utilization="},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(newServer(t, func(config *Config) {
				config.Settings.ORCA, config.Settings.ORCATrailer = c.format, c.inTrailer
			}).Handler())
			defer server.Close()
			post := func(path, body string) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, strings.NewReader(body))
				require.NoError(t, err)
				r.Header.Set("Endpoint-Load-Metrics-Format", c.ask)
				r.Header.Set("TE", c.te)
				response, err := server.Client().Do(r)
				require.NoError(t, err)
				defer response.Body.Close()
				_, err = io.Copy(io.Discard, response.Body)
				require.NoError(t, err)
				return response
			}
			begins := func(want, got string) {
				assert.Equal(t, want == "", got == "", got)
				assert.True(t, strings.HasPrefix(got, want), got)
			}
			job := post("/v1/jobs", `{"project_id": 12345}`) //nolint:bodyclose // post closes it
			require.Equal(t, http.StatusOK, job.StatusCode)
			begins(c.header, job.Header.Get("Endpoint-Load-Metrics"))
			begins(c.trailer, job.Trailer.Get("Endpoint-Load-Metrics"))

			// Without a body of data, a report is in the header.
			for path, body := range map[string]string{"/v1/prefetch": `{"project_id": 12345}`, "/v1/jobs": `{}`} {
				response := post(path, body) //nolint:bodyclose // post closes it
				begins(c.header+c.trailer, response.Header.Get("Endpoint-Load-Metrics"))
				assert.Empty(t, response.Trailer)
			}
		})
	}
}
