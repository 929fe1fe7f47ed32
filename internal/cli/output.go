package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
)

// WriteFile creates a file, or replaces one, with what write writes.
func WriteFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	if err := write(out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// CheckDirectory refuses what is not a directory. A long command calls it for
// the places of its outputs, so that it fails before its work rather than after.
func CheckDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	return err
}

// IsTerminal reports whether a person reads what is written there.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Progress tells a person how far a long command is: lines, and below them a bar
// if the output is a terminal.
type Progress struct {
	out   io.Writer
	bar   bool
	share func() float64
	begin time.Time
	stop  chan struct{}
	quiet chan struct{} // closed after the bar was drawn for the last time
}

// StartProgress shows progress on out until End. share is the share of the work
// that is done.
func StartProgress(out io.Writer, share func() float64) *Progress {
	p := &Progress{out: out, share: share, begin: time.Now(), stop: make(chan struct{}), quiet: make(chan struct{})}
	p.bar = IsTerminal(out)
	go p.draw()
	return p
}

// Line shows a line of text.
func (p *Progress) Line(text string) {
	if p.bar {
		text = "\r\x1b[K" + text
	}
	fmt.Fprintln(p.out, text)
}

// End removes the bar.
func (p *Progress) End() {
	close(p.stop)
	<-p.quiet
}

// draw draws the bar four times a second.
func (p *Progress) draw() {
	defer close(p.quiet)
	if !p.bar {
		return
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.out, "\r\x1b[K")
			return
		case now := <-tick.C:
			fmt.Fprintf(p.out, "\r\x1b[K%s", bar(p.share(), now.Sub(p.begin)))
		}
	}
}

// bar is the bar for a share that took some time.
func bar(share float64, took time.Duration) string {
	const width = 40
	share = min(max(share, 0), 1)
	full := int(share * width)
	text := fmt.Sprintf("[%s%s] %3.0f %%", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share)
	if share > 0.01 {
		left := time.Duration(float64(took) * (1 - share) / share)
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}
