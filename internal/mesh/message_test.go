package mesh

import (
	"net/http"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// FuzzDecode compares decode with generated code, on whatever that can read.
func FuzzDecode(f *testing.F) {
	full := bufferedMode.headers(true, ":path", "/a?b", "content-type", "x", "x-a", "1", "X-A", "2")
	full.Attributes = map[string]*structpb.Struct{attributesNamespace: {Fields: map[string]*structpb.Value{detailsKey: structpb.NewStringValue("via_upstream")}}}
	subset := duplexMode.headers(false)
	subset.MetadataContext = metadata(subsetNamespace, subsetKey, structpb.NewStringValue("a:1, B:2 ,"))
	for _, m := range []*ext.ProcessingRequest{full, subset, requestPart(posted, true), responseHead("10.0.0.1:80", false, "200"), endOfResponse, {}} {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte("\x12\x06\x0a\x04\x0a\x02\x10\x01\x50\x00")) // a header's value is a number
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decode(b)
		var want ext.ProcessingRequest
		if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, &want) != nil {
			return
		}
		b, err := proto.Marshal(&want) // each field once, as Envoy writes it
		require.NoError(t, err)
		got, err := decode(b)
		if err != nil {
			assert.True(t, err == errHeaders || err == errSubset, "%v: %v", err, &want) //nolint:errorlint // they are not wrapped
			return
		}
		headers, end := map[kind]*core.HeaderMap{
			requestHeaders: want.GetRequestHeaders().GetHeaders(), responseHeaders: want.GetResponseHeaders().GetHeaders(),
			requestTrailers: want.GetRequestTrailers().GetTrailers(), responseTrailers: want.GetResponseTrailers().GetTrailers(),
		}[got.kind], want.GetRequestHeaders().GetEndOfStream() || want.GetResponseHeaders().GetEndOfStream() ||
			want.GetRequestBody().GetEndOfStream() || want.GetResponseBody().GetEndOfStream()
		all := http.Header{}
		for _, h := range headers.GetHeaders() {
			if key := h.GetKey(); key != "" && key[0] != ':' {
				value := h.GetValue()
				if len(h.GetRawValue()) > 0 {
					value = string(h.GetRawValue())
				}
				all.Add(key, value)
			}
		}
		assert.Len(t, got.header, len(all))
		for name := range all {
			assert.Equal(t, all[name], got.header[name])
		}
		assert.Equal(t, end, got.end)
		assert.Equal(t, string(want.GetRequestBody().GetBody())+string(want.GetResponseBody().GetBody()), string(got.body))
		assert.Equal(t, want.GetObservabilityMode(), got.observability)
		text := func(namespaces map[string]*structpb.Struct, namespace, key string) string {
			return stored([]byte(namespaces[namespace].GetFields()[key].GetStringValue()))
		}
		assert.Equal(t, text(want.GetMetadataContext().GetFilterMetadata(), lbNamespace, servedKey), got.served)
		assert.Equal(t, text(want.GetAttributes(), attributesNamespace, detailsKey), got.details)
		if limit := want.GetMetadataContext().GetFilterMetadata()[subsetNamespace].GetFields()[subsetKey]; assert.Equal(t, limit != nil, got.hasSubset) {
			given := strings.Split(limit.GetStringValue(), ",")
			for _, v := range limit.GetListValue().GetValues() {
				given = append(given, v.GetStringValue())
			}
			n := 0
			for _, address := range given {
				if strings.TrimSpace(address) != "" {
					n++
				}
			}
			assert.Len(t, got.subset, n)
		}
	})
}
