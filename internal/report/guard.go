package report

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxToken bounds one string or number of a listing, in bytes. Only that
// bounds the memory of a listing, because the decoder holds a token whole.
const maxToken = 64 << 10

// guard feeds a decoder for as long as it gets on with what it was fed.
type guard struct {
	from io.Reader
	dec  *jsontext.Decoder
	fed  int64
}

func (g *guard) Read(into []byte) (int, error) {
	if g.fed-g.dec.InputOffset() > maxToken {
		return 0, fmt.Errorf("a value is longer than %d bytes", maxToken)
	}
	n, err := g.from.Read(into)
	g.fed += int64(n)
	return n, err
}
