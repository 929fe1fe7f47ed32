package logging

import (
	"context"
	"log/slog"
	"reflect"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.org/pilotfish/internal/settings"
)

// CaptureLibraries redirects what libraries log with the packages log and slog to this log, as JSON. Lines in other
// formats on standard error would be dropped or misread by log collectors.
func (l *Log) CaptureLibraries() {
	slog.SetLogLoggerLevel(slog.LevelWarn) // package log has no levels
	slog.SetDefault(slog.New(handler{log: l.Quiet}))
}

// handler is a slog.Handler over a zap logger. The attributes of a record become one text, so
// that none can replace a field of the line.
type handler struct {
	log   *zap.Logger
	group string
	attrs string
}

func (h handler) Enabled(_ context.Context, l slog.Level) bool {
	return h.log.Core().Enabled(zapLevel(l))
}

func (h handler) Handle(_ context.Context, r slog.Record) error {
	if line := h.log.Check(zapLevel(r.Level), r.Message); line != nil {
		var all []slog.Attr
		r.Attrs(func(a slog.Attr) bool { all = append(all, a); return true })
		details := h.with(all).attrs
		fields := []zap.Field{zap.String("details", strings.TrimSpace(details))}
		if details == "" {
			fields = nil
		}
		line.Write(fields...)
	}
	return nil
}

func (h handler) WithAttrs(all []slog.Attr) slog.Handler { return h.with(all) }

func (h handler) with(all []slog.Attr) handler {
	for _, a := range all {
		h.attrs += " " + h.group + a.Key + "=" + settings.Cut(a.Value.Resolve().String(), settings.MaxText)
	}
	return h
}

func (h handler) WithGroup(name string) slog.Handler {
	h.group += name + "."
	return h
}

func zapLevel(l slog.Level) zapcore.Level {
	switch {
	case l >= slog.LevelError:
		return zap.ErrorLevel
	case l >= slog.LevelWarn:
		return zap.WarnLevel
	case l >= slog.LevelInfo:
		return zap.InfoLevel
	}
	return zap.DebugLevel
}

// maxList bounds the texts of a list in a line. Servers, catalogues and files choose much of them.
const maxList = 100

// bounded is a zapcore.Core whose lines have bounds.
type bounded struct{ zapcore.Core }

func (b bounded) With(fields []zapcore.Field) zapcore.Core {
	return bounded{b.Core.With(shorten(fields))}
}

func (b bounded) Check(e zapcore.Entry, line *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if b.Enabled(e.Level) {
		return line.AddCore(e, b)
	}
	return line
}

func (b bounded) Write(e zapcore.Entry, fields []zapcore.Field) error {
	e.Message = settings.Cut(e.Message, settings.MaxText)
	return b.Core.Write(e, shorten(fields))
}

// shorten bounds the texts, errors and lists of fields. A list that was cut gets a field with its length.
func shorten(fields []zapcore.Field) []zapcore.Field {
	short := make([]zapcore.Field, 0, len(fields))
	for _, f := range fields {
		switch f.Type {
		case zapcore.StringType:
			f.String = settings.Cut(f.String, settings.MaxText)
		case zapcore.ErrorType:
			f = zap.String(f.Key, settings.Cut(f.Interface.(error).Error(), settings.MaxText))
		case zapcore.ArrayMarshalerType:
			if list := reflect.ValueOf(f.Interface); list.Kind() == reflect.Slice && list.Len() > maxList {
				f.Interface = list.Slice(0, maxList).Interface()
				short = append(short, zap.Int(f.Key+"_total", list.Len()))
			}
		}
		short = append(short, f)
	}
	return short
}
