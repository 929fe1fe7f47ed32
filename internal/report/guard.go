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
	from  io.Reader
	dec   *jsontext.Decoder
	fed   int64
	stuck error // why it stopped, without the decoder's words around it
}

func (g *guard) Read(into []byte) (int, error) {
	if g.fed-g.dec.InputOffset() > maxToken {
		g.stuck = fmt.Errorf("a value is longer than %d bytes", maxToken)
		return 0, g.stuck
	}
	n, err := g.from.Read(into)
	g.fed += int64(n)
	return n, err
}
