package admin

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var files embed.FS

// policy lets the page load what this port serves, and nothing else. It runs no script
// and no style that is written into the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// asset is one file of the page.
type asset struct {
	name, tag string
	text      []byte
}

// page serves the page and what it loads: / is index.html.
func page() (http.Handler, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(files, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		at := strings.TrimPrefix(name, "page")
		if at == "/index.html" {
			at = "/"
		}
		assets[at] = asset{name: path.Base(name), tag: `"` + hex.EncodeToString(sum[:8]) + `"`, text: text}
		return nil
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // the browser asks whether it changed
		h.Set("ETag", a.tag)
		http.ServeContent(w, r, a.name, time.Time{}, bytes.NewReader(a.text))
	}), err
}
