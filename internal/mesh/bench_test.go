package mesh

import (
	"io"
	"strings"
	"testing"

	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/record"
)

// BenchmarkStream is a job of 4 KB over gRPC, from its headers to the end of its stream. Half of the cost is the client's.
func BenchmarkStream(b *testing.B) {
	f := newFixture(b, 4, func(c *job.Config) { c.Sinks = []func(*record.Job){} })
	body := strings.Replace(posted, "{", `{"filling":"`+strings.Repeat("x", 4000)+`",`, 1)
	exchange := func() error {
		stream, err := ext.NewExternalProcessorClient(f.client).Process(b.Context())
		if err != nil {
			return err
		}
		for _, m := range []*ext.ProcessingRequest{
			bufferedMode.headers(false, ":path", "/v1/jobs", "content-type", "application/json", "content-length", "4050", "user-agent", "wrk"),
			requestPart(body, true), responseHead("", false, "200", "content-type", "application/json", "server", "envoy"),
		} {
			if err := stream.Send(m); err != nil {
				return err
			}
			if _, err := stream.Recv(); err != nil {
				return err
			}
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		if _, err := stream.Recv(); err != io.EOF { //nolint:errorlint // as it is documented
			return err
		}
		return nil
	}
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := exchange(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
