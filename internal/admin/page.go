package admin

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

//go:embed page
var content embed.FS

// policy lets the page load what this port serves, and nothing else. It runs no script
// and no style that is written into the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves the page and what it loads: / is index.html.
func page() (http.Handler, error) {
	within, err := fs.Sub(content, "page")
	server, tag := http.FileServerFS(within), fmt.Sprintf(`"%x"`, time.Now().UnixNano()) // it changes with the process only
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/") { // a list of files
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
		h.Set("ETag", tag)
		server.ServeHTTP(w, r)
	}), err
}
