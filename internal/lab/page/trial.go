package page

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/lab/figure"
	"example.org/pilotfish/internal/lab/stats"
	"example.org/pilotfish/internal/quality"
	"example.org/pilotfish/pkg/trace"
)

// trial is what submitters got, job by job, as N. J. Turner's thesis shows a trial.
type trial struct {
	name    string
	jobs    []quality.Job // in the order of their arrival
	changes []quality.Change
	start   time.Time
	end     float64 // seconds
}

// shownJobs is how many jobs a figure shows: of more, one of two, of three and so on.
const shownJobs = 1500

// newTrial judges the jobs of a capture.
func newTrial(name string, captured []trace.Job) (*trial, error) {
	t := &trial{name: name, start: time.Unix(0, 0)}
	var bounds []time.Duration
	for i := range captured {
		c := &captured[i]
		if c.Measured == nil {
			return nil, fmt.Errorf("%s: job %d does not tell what became of it: this is a trace, not a capture", name, i+1)
		}
		t.jobs = append(t.jobs, outcome(c, t.start))
		bounds = append(bounds, inTime(c.Timeouts.Queue+c.Timeouts.Evaluate))
		t.end = max(t.end, c.Offset+t.jobs[i].LastByte.Seconds())
	}
	if len(t.jobs) == 0 {
		return nil, fmt.Errorf("%s: there is no job", name)
	}
	t.changes = quality.Trial(t.jobs, func(i int) time.Duration { return bounds[i] })
	return t, nil
}

// outcome is what became of a captured job.
func outcome(c *trace.Job, start time.Time) quality.Job {
	m := c.Measured
	j := quality.Job{Priority: c.Priority, Outcome: intake.NoAnswer, Arrived: start.Add(inTime(c.Offset)), Waited: -1}
	for o := range intake.Outcome(intake.Outcomes) {
		if o.String() == m.Outcome {
			j.Outcome = o
		}
	}
	if m.TTFB != nil {
		j.Completeness, j.FirstByte = intake.Partial, inTime(*m.TTFB)
		j.LastByte = j.FirstByte
	}
	if n := len(m.Attempts); n > 0 {
		j.LastByte = max(j.LastByte, inTime(m.Attempts[n-1].End))
	}
	if m.TTLB != nil {
		j.Completeness, j.LastByte = intake.Complete, inTime(*m.TTLB)
	}
	return j
}

func inTime(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// shades are the figures' shades of the modes.
var shades = map[quality.Mode]figure.Shade{quality.Flat: figure.Flat, quality.Growing: figure.Growing, quality.Losing: figure.Losing}

// bands are the modes over time, in seconds.
func (t *trial) bands() (bands []figure.Band) {
	for i, c := range t.changes {
		to := t.end
		if i+1 < len(t.changes) {
			to = t.changes[i+1].At.Sub(t.start).Seconds()
		}
		bands = append(bands, figure.Band{From: c.At.Sub(t.start).Seconds(), To: to, Shade: shades[c.To]})
	}
	return bands
}

// sections are a trial's figures.
func (t *trial) sections() []section {
	step := (len(t.jobs) + shownJobs - 1) / shownJobs
	var shown []quality.Job
	for i := 0; i < len(t.jobs); i += step {
		shown = append(shown, t.jobs[i])
	}
	which := "Each job is shown."
	if step > 1 {
		which = fmt.Sprintf("Of the %s jobs, one of %d is shown.", stats.Thousands(len(t.jobs)), step)
	}
	return []section{t.timeline(shown, which), t.curves(shown)}
}

// timeline is the thesis's figure 9.
func (t *trial) timeline(shown []quality.Job, which string) section {
	s := section{
		ID: "timeline", Title: "Timeline (figure 9)", Shaded: true,
		Text: "A line for each job, from its arrival to the first byte of its response. Orange lines are jobs that came in part, crosses those that did not come. " + which,
	}
	spans := make([]figure.Span, len(shown))
	for i, j := range shown {
		arrived := j.Arrived.Sub(t.start).Seconds()
		spans[i] = figure.Span{
			From: arrived, To: arrived + j.FirstByte.Seconds(),
			Partial: j.Completeness == intake.Partial, Absent: j.Completeness == intake.Absent,
		}
	}
	s.add("", figure.Timeline("Timeline of jobs", spans, t.bands(), t.end))
	return s
}

// curves is the thesis's figure 12.
func (t *trial) curves(shown []quality.Job) section {
	s := section{
		ID: "kpi", Title: "Time to first and last byte (figure 12)", Shaded: true,
		Text: "Blue: from a job's arrival to the first byte of its response; amber: to the last byte; green: from the one to the other. A gap is a job whose response did not come so far.",
	}
	var first, last, between, arrivals []float64
	for _, j := range shown {
		times := [3]float64{math.NaN(), math.NaN(), math.NaN()}
		if j.Completeness != intake.Absent {
			times[0] = j.FirstByte.Seconds()
		}
		if j.Completeness == intake.Complete {
			times[1], times[2] = j.LastByte.Seconds(), (j.LastByte - j.FirstByte).Seconds()
		}
		first, last, between = append(first, times[0]), append(last, times[1]), append(between, times[2])
		arrivals = append(arrivals, j.Arrived.Sub(t.start).Seconds())
	}
	bands := t.bands() // by the number of the job, instead of the time
	for i := range bands {
		from, _ := slices.BinarySearch(arrivals, bands[i].From)
		to, _ := slices.BinarySearch(arrivals, bands[i].To)
		bands[i].From, bands[i].To = float64(from), float64(to)
	}
	s.add("", figure.Curves("Time to first byte, time to last byte and their difference, by job", [][]float64{first, last, between}, bands))
	return s
}

// text writes the trial's numbers and the modes that it went through.
func (t *trial) text(w io.Writer) error {
	var counted [intake.Completenesses]int
	var first []time.Duration
	for _, j := range t.jobs {
		if counted[j.Completeness]++; j.Completeness != intake.Absent {
			first = append(first, j.FirstByte)
		}
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s jobs over %s: %s complete, %s partial, %s absent", t.name, stats.Thousands(len(t.jobs)), stats.Span(t.end),
		stats.Thousands(counted[intake.Complete]), stats.Thousands(counted[intake.Partial]), stats.Thousands(counted[intake.Absent]))
	if len(first) > 0 && err == nil {
		slices.SortFunc(first, cmp.Compare)
		at := func(q float64) time.Duration { return first[int(q*float64(len(first)-1))].Round(time.Millisecond) }
		_, err = fmt.Fprintf(w, "; first byte %v in the median, %v at p99", at(0.5), at(0.99))
	}
	if err != nil {
		return err
	}
	g := &stats.Grid{Left: 4, Heads: [][]string{{"from", "mode", "cause", ""}}}
	for _, c := range t.changes {
		g.Rows = append(g.Rows, []string{stats.Span(c.At.Sub(t.start).Seconds()), c.To.String(), c.Cause, ""})
	}
	if _, err := io.WriteString(w, "\n\n"); err != nil {
		return err
	}
	return g.WriteText(w)
}

// ShowTrial shows the jobs of a capture, which are in the order of their arrival: as text,
// as a page in a file, and as figures in a folder. An empty path writes nothing.
func ShowTrial(w io.Writer, name string, captured []trace.Job, pagePath, figures string) error {
	t, err := newTrial(name, captured)
	if err != nil {
		return err
	}
	if err := t.text(w); err != nil {
		return err
	}
	if pagePath != "" {
		if err := cli.WriteFile(pagePath, t.writeHTML); err != nil {
			return err
		}
	}
	if figures != "" {
		return writeFigures(t.name, t.sections(), nil, figures)
	}
	return nil
}

func (t *trial) writeHTML(w io.Writer) error {
	var text strings.Builder
	if err := t.text(&text); err != nil {
		return err
	}
	p := page{Title: t.name, Common: "Figures are numbered as in N. J. Turner's thesis.", Text: text.String(), Sections: t.sections()}
	return p.write(w)
}
