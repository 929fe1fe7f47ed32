package mesh

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ext "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"example.org/pilotfish/internal/record"
)

// Names of the Endpoint Picker Protocol.
const (
	lbNamespace    = "envoy.lb"
	destinationKey = "x-gateway-destination-endpoint"
	servedKey      = "x-gateway-destination-endpoint-served"

	subsetNamespace = "envoy.lb.subset_hint"
	subsetKey       = "x-gateway-destination-endpoint-subset"
)

// served is the upstream that Envoy got the response from; "" if it does not tell.
func served(m *ext.ProcessingRequest) string {
	return m.GetMetadataContext().GetFilterMetadata()[lbNamespace].GetFields()[servedKey].GetStringValue()
}

// subset is the upstreams that a request may go to; nil is all. Some data planes
// write a list, some a text with commas.
func subset(m *ext.ProcessingRequest) []string {
	value := m.GetMetadataContext().GetFilterMetadata()[subsetNamespace].GetFields()[subsetKey]
	if value == nil {
		return nil
	}
	addresses := []string{}
	for _, v := range value.GetListValue().GetValues() {
		addresses = append(addresses, strings.TrimSpace(v.GetStringValue()))
	}
	for one := range strings.SplitSeq(value.GetStringValue(), ",") {
		addresses = append(addresses, strings.TrimSpace(one))
	}
	return addresses
}

// maxPiece bounds the body in one message to Envoy, in bytes, as Envoy recommends.
const maxPiece = 64 << 10

// goOn lets the headers of a request pass as they are.
func goOn() *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_RequestHeaders{
		RequestHeaders: &ext.HeadersResponse{Response: &ext.CommonResponse{}},
	}}
}

// destination tells Envoy where the request goes, in the reply to its headers or
// to its whole body, and adds headers to it.
func destination(addresses []string, add http.Header, toBody bool) *ext.ProcessingResponse {
	list := strings.Join(addresses, ",")
	add[destinationKey] = []string{list}
	common := &ext.CommonResponse{HeaderMutation: mutation(add)}
	m := &ext.ProcessingResponse{DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		lbNamespace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			destinationKey: structpb.NewStringValue(list),
		}}),
	}}}
	if toBody {
		m.Response = &ext.ProcessingResponse_RequestBody{RequestBody: &ext.BodyResponse{Response: common}}
	} else {
		m.Response = &ext.ProcessingResponse_RequestHeaders{RequestHeaders: &ext.HeadersResponse{Response: common}}
	}
	return m
}

// requestPiece passes a piece of a streamed request's body on.
func requestPiece(body []byte, last bool) *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_RequestBody{RequestBody: piece(body, last)}}
}

// responsePiece passes a piece of a streamed response's body on.
func responsePiece(body []byte, last bool) *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_ResponseBody{ResponseBody: piece(body, last)}}
}

func piece(body []byte, last bool) *ext.BodyResponse {
	return &ext.BodyResponse{Response: &ext.CommonResponse{BodyMutation: &ext.BodyMutation{
		Mutation: &ext.BodyMutation_StreamedResponse{StreamedResponse: &ext.StreamedBodyResponse{Body: body, EndOfStream: last}},
	}}}
}

// responseHeaders lets the headers of a response pass, with some set.
func responseHeaders(set http.Header) *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &ext.HeadersResponse{Response: &ext.CommonResponse{HeaderMutation: mutation(set)}},
	}}
}

func requestTrailers() *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_RequestTrailers{RequestTrailers: &ext.TrailersResponse{}}}
}

func responseTrailers() *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_ResponseTrailers{ResponseTrailers: &ext.TrailersResponse{}}}
}

// answer makes Envoy answer with a problem.
func answer(p record.Problem, header http.Header) *ext.ProcessingResponse {
	return &ext.ProcessingResponse{Response: &ext.ProcessingResponse_ImmediateResponse{ImmediateResponse: &ext.ImmediateResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(p.Status)}, //nolint:gosec // a status fits
		Headers: mutation(header),
		Body:    p.Body(),
		Details: "pilotfish_" + strings.ReplaceAll(p.Reason, "-", "_"),
	}}}
}

// mutation sets headers, in the order of their names.
func mutation(set http.Header) *ext.HeaderMutation {
	if len(set) == 0 {
		return nil
	}
	m := &ext.HeaderMutation{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		m.SetHeaders = append(m.SetHeaders, &core.HeaderValueOption{
			Header:       &core.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(set[name][0])},
			AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return m
}
