package operator

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/quality"
)

// Top shows a sidecar's upstreams and its quality of service.
type Top struct {
	adminPort
	Every time.Duration `default:"2s" help:"Refresh interval on a terminal."`
	Rows  int           `default:"40" placeholder:"N" help:"Maximum number of upstreams: first those that are not eligible or at which attempts fail, then the busiest."`
}

// Run prints the table once, or repeatedly until Ctrl-C on a terminal.
func (c *Top) Run(s cli.Console) error {
	if c.Every < 100*time.Millisecond || c.Rows < 1 {
		return errors.New("--every must be at least 100ms, and --rows at least 1")
	}
	if !cli.IsTerminal(s.Out) {
		text, err := c.draw()
		if err != nil {
			return err
		}
		_, err = io.WriteString(s.Out, text)
		return err
	}
	ctx, stop := cli.Context()
	defer stop()
	for ctx.Err() == nil { // until Ctrl-C
		text, err := c.draw()
		if err != nil {
			text = cli.Plain(err.Error()) + "\n"
		}
		// Cursor to the top; clear the rest of each line, and everything below.
		fmt.Fprint(s.Out, "\x1b[H"+strings.ReplaceAll(text, "\n", "\x1b[K\n")+"\x1b[J")
		select {
		case <-ctx.Done():
		case <-time.After(c.Every):
		}
	}
	return nil
}

// draw queries the sidecar, and returns the table.
func (c *Top) draw() (string, error) {
	var now admin.Now
	if err := c.request(http.MethodGet, "/api/now", nil, &now); err != nil {
		return "", err
	}
	if len(now.Fleet.Windows) == 0 {
		return "", fmt.Errorf("%s is no sidecar's admin port: its reply has no windows", c.Admin)
	}
	var out strings.Builder
	writeFleet(&out, &now)
	writeUpstreams(&out, now.Upstreams, c.Rows)
	return out.String(), nil
}

// screen is the width of a line in columns.
const screen = 80

// wrap breaks a line between words at the width of the screen. All lines but the first are indented.
func wrap(line string, indent int) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(line) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > screen:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String() + "\n"
}

// Each row of the table of upstreams is an address and these columns: 80 characters.
const addressWidth = 22

var columns = []struct {
	title string
	width int
	text  func(u *quality.Upstream) string
}{
	{"jobs", 6, func(u *quality.Upstream) string { return short(u.Jobs) }},
	{"own", 5, func(u *quality.Upstream) string { return fmt.Sprint(u.InFlight) }},
	{"wait", 8, func(u *quality.Upstream) string { return known(u.Wait) }},
	{"attempts/min", 13, func(u *quality.Upstream) string { return fmt.Sprint(u.MinuteAttempts) }},
	{"failed", 7, func(u *quality.Upstream) string { return fmt.Sprint(u.MinuteFailed) }},
	{"found", 7, func(u *quality.Upstream) string { return share(u.MinuteData.Found, u.MinuteData.Jobs) }},
	{"first byte", 12, func(u *quality.Upstream) string { return measured(u.Latency) }},
}

// writeUpstreams writes a row for each upstream, up to rows, and the number of omitted ones. Upstreams with problems come
// first, then the busiest. A status other than eligible and an unsteady mode are written below the row.
func writeUpstreams(out *strings.Builder, upstreams []quality.Upstream, rows int) {
	rank := func(u *quality.Upstream) int {
		switch {
		case !u.Eligible:
			return 0
		case u.MinuteFailed > 0:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(upstreams, func(a, b quality.Upstream) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Jobs, a.Jobs), compareAddresses(a.Address, b.Address))
	})
	fmt.Fprintf(out, "%-*s", addressWidth, "upstream")
	for _, c := range columns {
		fmt.Fprintf(out, "%*s", c.width, c.title)
	}
	fmt.Fprintln(out)
	for i := range upstreams[:min(rows, len(upstreams))] {
		u := &upstreams[i]
		address := cli.Plain(u.Address)
		if utf8.RuneCountInString(address) > addressWidth {
			fmt.Fprintln(out, address)
			address = ""
		}
		fmt.Fprintf(out, "%-*s", addressWidth, address)
		for _, c := range columns {
			fmt.Fprintf(out, "%*s", c.width, c.text(u))
		}
		fmt.Fprintln(out)
		status := cli.Plain(u.Status)
		if u.Mode != quality.Steady && u.Mode != quality.Unknown {
			status += "; " + cli.Plain(string(u.Mode))
		}
		if status != "eligible" {
			out.WriteString("  " + wrap(status, 2))
		}
	}
	if left := len(upstreams) - rows; left > 0 {
		fmt.Fprintf(out, "and %d more; --rows shows them\n", left)
	}
}

var digits = regexp.MustCompile(`\d+|\D+`)

// compareAddresses compares the numbers in addresses as numbers: 10.0.0.9 is before 10.0.0.10.
func compareAddresses(a, b string) int {
	return slices.CompareFunc(digits.FindAllString(a, -1), digits.FindAllString(b, -1), func(x, y string) int {
		m, err := strconv.ParseUint(x, 10, 64)
		n, errOther := strconv.ParseUint(y, 10, 64)
		if err != nil || errOther != nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(m, n)
	})
}
