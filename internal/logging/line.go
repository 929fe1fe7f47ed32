package logging

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/record"
)

// line is a JSON object while it is written, with a method for each kind of member.
// Its bytes are those that zap's encoder would write. It is passed by value, so that
// it may begin on the stack.
type line []byte

// job appends the whole line of a job that ended at an instant. What did not happen has
// no member.
func (l line) job(level zapcore.Level, c *clock, ended time.Time, r *record.Job) line {
	l = append(l, '{')
	l = l.word("level", level.String())
	l = append(c.append(append(l.key("ts"), '"'), ended), '"')
	l = l.word("msg", "job")
	l = l.text("id", r.ID)
	l, from := l.open("session")
	l = line(r.Facts.Session.Append(l)).close(from)
	l, from = l.open("project")
	l = line(r.Facts.Project.Append(l)).close(from)
	l = l.word("priority", r.Facts.Priority.String())
	l = l.word("read", r.Read.String())
	l = l.word("outcome", r.Outcome.String())
	l = l.number("status", int64(r.Status))
	l = l.attempts(r.Attempts)
	l = l.seconds("queue_seconds", r.Queued)
	l = l.seconds("ttfb_seconds", r.TTFB)
	l = l.seconds("total_seconds", r.Total)
	l = l.number("body_bytes", r.Body)
	l = l.number("answer_bytes", r.Bytes)
	l = l.word("answer", r.Completeness.String())
	if r.Unread != "" {
		l = l.text("unread", r.Unread)
	}
	if r.Reason != "" {
		l = l.text("reason", r.Reason)
	}
	if r.Unframed {
		l = l.flag("unframed", true)
	}
	if r.Unkept {
		l = l.flag("replay_disabled", true)
	}
	if r.RetryRefused {
		l = l.flag("retry_refused", true)
	}
	if r.Err != nil {
		l = l.text("error", r.Err.Error())
	}
	return append(l, '}', '\n')
}

// attempts appends the upstreams tried, each with what spoke for the choice.
func (l line) attempts(tried []record.Attempt) line {
	l = append(l.key("attempts"), '[')
	for i := range tried {
		if i > 0 {
			l = append(l, ',')
		}
		l = l.attempt(&tried[i])
	}
	return append(l, ']')
}

func (l line) attempt(a *record.Attempt) line {
	l = append(l, '{')
	l = l.text("upstream", a.Upstream)
	l = l.word("outcome", a.Outcome.String())
	l = l.word("cache", a.Cache.String())
	l, from := l.open("why")
	l = line(a.AppendWhy(l)).close(from)
	l = l.seconds("seconds", a.End-a.Start)
	if h := a.Hint; h != nil { // what the upstream says of the job itself
		if h.Waited >= 0 {
			l = l.seconds("upstream_wait_seconds", h.Waited)
		}
		if h.Fetched >= 0 {
			l = l.seconds("upstream_fetch_seconds", h.Fetched)
		}
		if h.Known {
			l = l.flag("upstream_cached", h.Cached)
		}
	}
	if a.Repeated {
		l = l.flag("repeated", true)
	}
	if a.Err != nil {
		l = l.text("error", a.Err.Error())
	}
	return append(l, '}')
}

// key appends the name of a member. It needs no escapes.
func (l line) key(name string) line {
	if l[len(l)-1] != '{' {
		l = append(l, ',')
	}
	l = append(l, '"')
	l = append(l, name...)
	return append(l, '"', ':')
}

func (l line) number(key string, value int64) line {
	return strconv.AppendInt(l.key(key), value, 10)
}

// seconds appends the shortest number of seconds. Below one second its digits are those of the
// nanoseconds; a longer time is not exact as a float.
func (l line) seconds(key string, d time.Duration) line {
	l = l.key(key)
	if d <= 0 || d >= time.Second {
		return strconv.AppendFloat(l, d.Seconds(), 'f', -1, 64)
	}
	l = append(l, '0')
	point := len(l)
	l = strconv.AppendInt(l, int64(time.Second+d), 10) // a 1, and nine digits
	l[point] = '.'
	return bytes.TrimRight(l, "0")
}

func (l line) flag(key string, value bool) line {
	return strconv.AppendBool(l.key(key), value)
}

// word appends a word of pilotfish's own, which needs no escapes.
func (l line) word(key, value string) line {
	l = append(l.key(key), '"')
	l = append(l, value...)
	return append(l, '"')
}

func (l line) text(key, value string) line {
	l, from := l.open(key)
	return append(l, value...).close(from)
}

// open begins a member that is a text, and says where the text does. It is appended as
// it is; close adds the escapes.
func (l line) open(key string) (opened line, from int) {
	l = append(l.key(key), '"')
	return l, len(l)
}

// close ends the text that begins at from. Hardly any text needs an escape.
func (l line) close(from int) line {
	if text := l[from:]; !plain(text) {
		l = appendEscaped(l[:from], string(text))
	}
	return append(l, '"')
}

// plain reports whether a text is the same in JSON. One that is not ASCII may be, too.
// It looks at eight bytes at a time: each subtraction sets the highest bit of a byte that
// needs an escape, and borrows from the next byte only after such a one.
func plain(text []byte) bool {
	const ones = 0x01_01_01_01_01_01_01_01
	for ; len(text) >= 8; text = text[8:] {
		x := binary.LittleEndian.Uint64(text)
		if odd := x | (x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones); odd&(0x80*ones) != 0 {
			return false
		}
	}
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendEscaped appends a text as it stands between quotes in JSON. Bytes that are no
// UTF-8 become the replacement character.
func appendEscaped(b line, text string) line {
	const hex = "0123456789abcdef"
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xF])
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			b = append(b, `\ufffd`...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// clock turns instants into text. It keeps the text of the last second: that of
// thousands of lines.
type clock struct{ last atomic.Pointer[second] }

// second is what the instants of one second have in common.
type second struct {
	unix       int64
	text, zone string // the date and the time of day; the offset from UTC
}

// append appends an instant, to the millisecond.
func (c *clock) append(b line, t time.Time) line {
	s := c.last.Load()
	if s == nil || s.unix != t.Unix() {
		s = &second{unix: t.Unix(), text: t.Format("2006-01-02T15:04:05"), zone: t.Format("Z0700")}
		c.last.Store(s)
	}
	ms := t.Nanosecond() / int(time.Millisecond)
	b = append(b, s.text...)
	b = append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	return append(b, s.zone...)
}
