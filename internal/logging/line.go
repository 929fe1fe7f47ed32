package logging

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/record"
)

// line is the line of a job. It encodes the same fields as zap's encoder, in half of the time: a line has no
// other types, and most texts need no escape.
type line struct {
	zapcore.ObjectEncoder // nil: no other method is called
	text                  []byte
	list                  list // a field, to save an allocation
}

func (l *line) encode(level zapcore.Level, r *record.Job) {
	l.text = append(l.text[:0], '{')
	l.AddString("level", level.String())
	l.key("ts")
	l.text = append(l.text, '"')
	l.text = r.Ended().AppendFormat(l.text, time.RFC3339Nano)
	l.text = append(l.text, '"')
	l.AddString("msg", "job")
	_ = r.MarshalLogObject(l) // it always returns nil
	l.text = append(l.text, "}\n"...)
}

// comma separates two elements of an object or of an array.
func (l *line) comma() {
	if last := l.text[len(l.text)-1]; last != '{' && last != '[' {
		l.text = append(l.text, ',')
	}
}

func (l *line) key(key string) {
	l.comma()
	l.text = append(l.text, '"')
	l.text = append(l.text, key...)
	l.text = append(l.text, `":`...)
}

// AddString implements zapcore.ObjectEncoder, as the following methods do.
func (l *line) AddString(key, value string) {
	l.key(key)
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(value) // it never fails for a string
			l.text = append(l.text, quoted...)
			return
		}
	}
	l.text = append(l.text, '"')
	l.text = append(l.text, value...)
	l.text = append(l.text, '"')
}

func (l *line) AddInt64(key string, value int64) {
	l.key(key)
	l.text = strconv.AppendInt(l.text, value, 10)
}

func (l *line) AddBool(key string, value bool) {
	l.key(key)
	l.text = strconv.AppendBool(l.text, value)
}

// exact is the number of seconds up to which a float64 has room for nanoseconds.
const exact = 1 << 22

func (l *line) AddFloat64(key string, value float64) {
	l.key(key)
	ns := int64(math.Round(value * 1e9))
	if !(value >= 0 && value < exact) || float64(ns)/1e9 != value {
		l.text = strconv.AppendFloat(l.text, value, 'f', -1, 64)
		return
	}
	l.text = strconv.AppendInt(l.text, ns/1e9, 10)
	if part := ns % 1e9; part > 0 {
		var room [10]byte
		digits := strconv.AppendInt(room[:0], 1e9+part, 10)
		digits[0] = '.'
		l.text = append(l.text, bytes.TrimRight(digits, "0")...)
	}
}

func (l *line) AddArray(key string, value zapcore.ArrayMarshaler) error {
	l.key(key)
	l.text = append(l.text, '[')
	l.list.line = l
	err := value.MarshalLogArray(&l.list)
	l.text = append(l.text, ']')
	return err
}

// list is an array in a line.
type list struct {
	zapcore.ArrayEncoder // nil: no other method is called
	line                 *line
}

func (l *list) AppendObject(value zapcore.ObjectMarshaler) error {
	l.line.comma()
	l.line.text = append(l.line.text, '{')
	err := value.MarshalLogObject(l.line)
	l.line.text = append(l.line.text, '}')
	return err
}
