package mesh

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"example.org/pilotfish/internal/record"
)

// The field numbers of a reply, an envoy.service.ext_proc.v3.ProcessingResponse.
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

// maxPiece is the maximum size of the body in one message, in bytes, as Envoy recommends.
const maxPiece = 64 << 10

// embed appends a field with the value that write appends: a string, bytes or an embedded message.
func embed(b []byte, n protowire.Number, write func(b []byte) []byte) []byte {
	b = protowire.AppendTag(b, n, protowire.BytesType)
	at := len(b)
	b = write(append(b, 0)) // most are short: one byte for the size
	size := len(b) - at - 1
	if more := protowire.SizeVarint(uint64(size)) - 1; more > 0 {
		b = slices.Insert(b, at+1, make([]byte, more)...)
	}
	protowire.AppendVarint(b[:at], uint64(size))
	return b
}

// put appends a string field.
func put(b []byte, n protowire.Number, text string) []byte {
	return append(size(b, n, len(text)), text...)
}

// size appends the tag and the size of a field whose value has this number of bytes.
func size(b []byte, n protowire.Number, bytes int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(bytes)) //nolint:gosec // a length
}

func putVarint(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// proceed appends a HeadersResponse or BodyResponse with which Envoy continues and sets some headers.
func proceed(b []byte, reply protowire.Number, set http.Header) []byte {
	return embed(b, reply, func(b []byte) []byte {
		return embed(b, 1, func(b []byte) []byte {
			if len(set) == 0 {
				return b
			}
			return embed(b, 2, func(b []byte) []byte { return mutation(b, set) })
		})
	})
}

// destination appends a reply with the upstreams for a request, the best first, in a header and in the dynamic
// metadata, and with headers to add. It replies to the request's headers or to its whole body.
func destination(b []byte, reply protowire.Number, addresses []string, add http.Header) []byte {
	list := strings.Join(addresses, ",")
	add[destinationKey] = []string{list}
	b = proceed(b, reply, add)
	return embed(b, dynamicMetadata, func(b []byte) []byte {
		return entry(b, lbNamespace, structValue, func(b []byte) []byte {
			return entry(b, destinationKey, stringValue, func(b []byte) []byte { return append(b, list...) })
		})
	})
}

// entry appends an entry of a Struct's map. kind is the kind of its Value.
func entry(b []byte, key string, kind protowire.Number, value func(b []byte) []byte) []byte {
	return embed(b, 1, func(b []byte) []byte {
		return embed(put(b, 1, key), 2, func(b []byte) []byte { return embed(b, kind, value) })
	})
}

// piece appends a StreamedBodyResponse, which forwards a piece of a body.
func piece(b []byte, reply protowire.Number, body []byte, last bool) []byte {
	sizes := [...]int{0, 0, 0, 1 + protowire.SizeBytes(len(body))} // sizes of the nested messages in fields numbers, outermost first
	numbers := [...]protowire.Number{reply, 1, 3, 3}
	if last {
		sizes[3] += 2
	}
	for i := 2; i >= 0; i-- {
		sizes[i] = 1 + protowire.SizeBytes(sizes[i+1])
	}
	b = slices.Grow(b, 1+protowire.SizeBytes(sizes[0]))
	for i, n := range numbers {
		b = size(b, n, sizes[i])
	}
	if b = append(size(b, 1, len(body)), body...); last {
		b = putVarint(b, 2, 1)
	}
	return b
}

// trailers appends a reply that forwards trailers.
func trailers(b []byte, reply protowire.Number) []byte { return size(b, reply, 0) }

// immediate appends a reply that makes Envoy send an error response.
func immediate(b []byte, p record.Problem, header http.Header) []byte {
	return embed(b, immediateResponse, func(b []byte) []byte {
		b = embed(b, 1, func(b []byte) []byte { return putVarint(b, 1, uint64(p.Status)) }) //nolint:gosec // a status is positive
		b = embed(b, 2, func(b []byte) []byte { return mutation(b, header) })
		b = put(b, 3, string(p.Body()))
		return put(b, 5, "pilotfish_"+strings.ReplaceAll(p.Reason, "-", "_"))
	})
}

// overwrite is OVERWRITE_IF_EXISTS_OR_ADD of core.HeaderValueOption: a submitter must not choose the value.
const overwrite = 2

// mutation appends the fields of a HeaderMutation, in the order of the names.
func mutation(b []byte, set http.Header) []byte {
	var few [8]string
	names := slices.AppendSeq(few[:0], maps.Keys(set))
	slices.Sort(names)
	for _, name := range names {
		b = embed(b, 1, func(b []byte) []byte {
			b = embed(b, 1, func(b []byte) []byte {
				b = size(b, 1, len(name))
				for i := range len(name) {
					b = append(b, lower(name[i]))
				}
				return put(b, 3, set[name][0])
			})
			return putVarint(b, 3, overwrite)
		})
	}
	return b
}

// lower converts an ASCII letter to lower case.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
