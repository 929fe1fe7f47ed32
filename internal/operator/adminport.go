// Package operator is the commands that query the admin port of a running sidecar.
package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/files"
	"example.org/pilotfish/internal/httpclient"
	"example.org/pilotfish/internal/settings"
)

// adminPort is the admin port of a running sidecar.
type adminPort struct {
	Admin     string `default:"127.0.0.1:9180" placeholder:"HOST:PORT" help:"The admin port of a running sidecar, or unix:PATH."`
	TokenFile string `type:"path" placeholder:"FILE" help:"File with the token, if the admin port requires one (admin_token_file)."`
}

// maxReply is the maximum size of a reply in bytes. The reply for 300 upstreams is about
// a hundredth of it.
const maxReply = 64 << 20

// maxReason is the number of bytes shown of a reply that is not JSON.
const maxReason = 200

// request sends a request to the admin port and reads the reply, which is JSON.
func (p adminPort) request(method, path string, body []byte, into any) error {
	text, err := p.read(method, path, body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is no sidecar's admin port: %w", p.Admin, err)
	}
	return nil
}

// read sends a request to the admin port and returns the response; Ctrl-C aborts it. The path must be
// escaped, and can have a query.
func (p adminPort) read(method, path string, body []byte) ([]byte, error) {
	ctx, stop := cli.Context()
	defer stop()
	if strings.Contains(p.Admin, "://") {
		_, err := settings.Address(p.Admin)
		return nil, fmt.Errorf("--admin: %w", err)
	}
	host, transport := p.Admin, &http.Transport{DisableKeepAlives: true}
	if socket, local := settings.UnixPath(p.Admin); local {
		host = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	client := httpclient.New(transport) // it does not send the token to another server
	client.Timeout = 10 * time.Second
	r, err := http.NewRequestWithContext(ctx, method, "http://"+host+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	token, err := files.Token(p.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // without the URL
		}
		return nil, fmt.Errorf("no sidecar replies at %s: %w; name its admin port with --admin", p.Admin, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Admin, err)
	}
	if response.StatusCode != http.StatusOK {
		var problem struct{ Error, Detail string }
		if json.Unmarshal(text, &problem) != nil {
			problem.Detail = strings.TrimSpace(settings.Cut(string(text), maxReason))
		}
		hint := ""
		if response.StatusCode == http.StatusUnauthorized {
			hint = "; name the file of its token with --token-file"
		}
		if response.StatusCode == http.StatusNotFound && problem.Error == "" {
			hint = "; name the sidecar's admin port with --admin, not the port for jobs"
		}
		if at := response.Header.Get("Location"); at != "" {
			hint = fmt.Sprintf("; it redirects to %q, which is not followed", settings.Cut(at, maxReason))
		}
		return nil, fmt.Errorf("%s replies %s %s%s", p.Admin, cli.Plain(response.Status), settings.Cut(cli.Plain(problem.Error+problem.Detail), settings.MaxText), hint)
	}
	return text, nil
}

// short formats a number with three digits, or without decimals.
func short(x float64) string {
	if math.Abs(x) >= 999.5 { // three digits of it have an exponent
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}
