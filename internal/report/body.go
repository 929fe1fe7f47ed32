package report

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// bounded reads at most max bytes; one more is an error. It remembers why it
// broke, because parsers dress an error of their source up as one of their own.
type bounded struct {
	from  io.Reader
	left  int64
	max   int64
	broke error // nil at the regular end
}

func newBounded(from io.Reader, max int64) *bounded {
	return &bounded{from: from, left: max, max: max}
}

func (b *bounded) Read(into []byte) (int, error) {
	if b.broke != nil {
		return 0, b.broke
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.from.Read(into)
	if int64(n) > b.left {
		n, err = int(b.left), fmt.Errorf("longer than %d bytes", b.max)
	}
	b.left -= int64(n)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("cut short")
	}
	b.broke = err
	return n, err
}

// cause returns why a parser failed with err: the source's reason, if it broke.
func (b *bounded) cause(err error) error {
	if b.broke != nil {
		return b.broke
	}
	return err
}

// openBody returns the body of resp, decompressed. Both what comes over the
// wire and what it unfolds to are bounded by max.
func openBody(resp *http.Response, max int64) (*bounded, error) {
	raw := newBounded(resp.Body, max)
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return raw, nil
	case "gzip":
		unzipped, err := gzip.NewReader(raw)
		if err != nil {
			return nil, raw.cause(err)
		}
		return newBounded(unzipped, max), nil
	default:
		return nil, fmt.Errorf("content encoding %q was not asked for", encoding)
	}
}
