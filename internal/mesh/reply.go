package mesh

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/record"
)

// Replies are envoy.service.ext_proc.v3.ProcessingResponse. These are the numbers of its fields.
const (
	requestHeadersReply   protowire.Number = 1
	responseHeadersReply  protowire.Number = 2
	requestBodyReply      protowire.Number = 3
	responseBodyReply     protowire.Number = 4
	requestTrailersReply  protowire.Number = 5
	responseTrailersReply protowire.Number = 6
	immediateResponse     protowire.Number = 7
	dynamicMetadata       protowire.Number = 8
)

// maxPiece bounds the body in one message to Envoy, in bytes, as Envoy recommends.
const maxPiece = 64 << 10

// put appends a field: a text, bytes or an embedded message, which is the concatenation of its parts.
func put[T string | []byte](b []byte, n protowire.Number, parts ...T) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(size)) //nolint:gosec // a length
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func putVarint(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// proceed lets headers or a body pass with some headers set: a HeadersResponse or BodyResponse with a
// CommonResponse.
func proceed(reply protowire.Number, set http.Header) []byte {
	var common []byte
	if len(set) > 0 {
		common = put(nil, 2, mutation(set))
	}
	return put(nil, reply, put(nil, 1, common))
}

// destination names the upstreams for a request, the best first, in a header and in the dynamic metadata, and adds
// headers to it. It replies to the request's headers or to its whole body.
func destination(reply protowire.Number, addresses []string, add http.Header) []byte {
	list := strings.Join(addresses, ",")
	add[destinationKey] = []string{list}
	value := put(nil, stringValue, list)
	field := put(nil, 1, put(put(nil, 1, destinationKey), 2, value))
	metadata := put(nil, 1, put(put(nil, 1, lbNamespace), 2, put(nil, 5, field))) // 5 is a Value's struct_value
	return put(proceed(reply, add), dynamicMetadata, metadata)
}

// piece sends a piece of a body on, in a StreamedBodyResponse.
func piece(reply protowire.Number, body []byte, last bool) []byte {
	streamed := make([]byte, 0, len(body)+16)
	if streamed = put(streamed, 1, body); last {
		streamed = putVarint(streamed, 2, 1)
	}
	mutation := put(nil, 3, streamed)
	common := put(nil, 3, mutation)
	return put(nil, reply, put(nil, 1, common))
}

// trailers lets trailers pass.
func trailers(reply protowire.Number) []byte { return put(nil, reply, "") }

// immediate has Envoy respond with a problem.
func immediate(p record.Problem, header http.Header) []byte {
	status := putVarint(nil, 1, uint64(p.Status)) //nolint:gosec // a status is positive
	m := put(put(nil, 1, status), 2, mutation(header))
	m = put(m, 3, p.Body())
	return put(nil, immediateResponse, put(m, 5, "pilotfish_"+strings.ReplaceAll(p.Reason, "-", "_")))
}

// overwrite is OVERWRITE_IF_EXISTS_OR_ADD of core.HeaderValueOption: a submitter must not choose the value.
const overwrite = 2

// mutation sets headers, in the order of their names.
func mutation(set http.Header) (m []byte) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		line := put(put(nil, 1, strings.ToLower(name)), 3, set[name][0])
		m = put(m, 1, putVarint(put(nil, 1, line), 3, overwrite))
	}
	return m
}
