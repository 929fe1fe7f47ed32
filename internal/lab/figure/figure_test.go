package figure

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shapes counts the filled shapes of each colour; the figure must be well formed.
func shapes(t *testing.T, s SVG) map[string]int {
	t.Helper()
	count := map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(string(s)))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "not well formed:\n%s", s)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
			for _, a := range e.Attr {
				if m := regexp.MustCompile(`fill:(#[0-9A-Fa-f]{6})`).FindStringSubmatch(a.Value); m != nil {
					count[strings.ToLower(m[1])]++
				}
			}
		}
	}
	assert.Empty(t, regexp.MustCompile(`NaN|Inf|https?:|xmlns|font-family`).FindAllString(string(s), -1))
	return count
}

// texts are the words in a figure.
func texts(s SVG) []string {
	var all []string
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)</text>`).FindAllStringSubmatch(string(s), -1) {
		all = append(all, m[1])
	}
	return all
}

func TestBars(t *testing.T) {
	s := Bars("waits & more", []string{"mean", "p99"}, []Bar{
		{Values: []float64{0.5, 20}, Marks: []float64{0.8, 0}},
		{Values: []float64{0, 3000}},
	})
	assert.Equal(t, 1, strings.Count(strings.ToLower(string(s)), "stroke-width:1.4\""), "a published value is a line; 0 is none")
	count := shapes(t, s)
	assert.Equal(t, 2, count[Color(0)])
	assert.Equal(t, 2, count[Color(1)])
	assert.Equal(t, 1.5, height(t, s, Color(1)), "0 is a stub")
	assert.Contains(t, string(s), `aria-label="waits &amp; more"`)
	assert.Equal(t, []string{"mean", "p99", "100 ms", "1 s", "10 s", "100 s", "1000 s", "10000 s"}, texts(s))
}

func TestBarsWithoutAny(t *testing.T) {
	assert.Empty(t, shapes(t, Bars("none", []string{"mean"}, nil)))
	assert.NotEmpty(t, shapes(t, Bars("zeros", []string{"mean"}, []Bar{{Values: []float64{0}}})))
}

// A bar twice as high in decades is twice as high on paper.
func TestBarsAreLogarithmic(t *testing.T) {
	s := Bars("", []string{"a"}, []Bar{{Values: []float64{10}}, {Values: []float64{100}}, {Values: []float64{1}}, {Values: []float64{1000}}})
	assert.InEpsilon(t, 2*height(t, s, Color(0)), height(t, s, Color(1)), 0.01)
	assert.InEpsilon(t, 3*height(t, s, Color(0)), height(t, s, Color(3)), 0.01)
}

// height is that of the first bar of a colour.
func height(t *testing.T, s SVG, color string) float64 {
	t.Helper()
	m := regexp.MustCompile(`d="M[0-9.]+,([0-9.]+)L[0-9.]+,[0-9.]+L[0-9.]+,([0-9.]+)[^"]*"\s+style="fill:` + strings.ToUpper(color)).FindStringSubmatch(string(s))
	require.NotNil(t, m, "%s in %s", color, s)
	bottom, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	top, err := strconv.ParseFloat(m[2], 64)
	require.NoError(t, err)
	return top - bottom
}

func TestDots(t *testing.T) {
	s := Dots("variance", "s²", []Dot{{Name: "first", Values: []float64{1, 10, 0}, All: 5, Mark: 7}, {Name: "second <b>", All: 100}})
	count := shapes(t, s)
	assert.Equal(t, 1, count[Color(0)], "the diamond; circles are not filled")
	assert.Equal(t, 1, count[Color(1)])
	assert.Equal(t, 3, strings.Count(strings.ToLower(string(s)), "stroke:"+Color(0)))
	assert.Subset(t, texts(s), []string{"first", "second &lt;b&gt;", "s²", "1", "10", "100"})
}

func TestStrip(t *testing.T) {
	s := Strip("overload", 60, 600, [][]float64{{0, 0, 1, 1, 0}, {0, 0.5, 0, 0, 0}}, [][]float64{{0, 0, 0, 0, 0}, {0, 0, 0, 1, 1}})
	count := shapes(t, s)
	assert.Equal(t, 1, count[css(heat(1))], "equal neighbours are one shape")
	assert.Equal(t, 1, count[css(heat(0.5))])
	assert.Equal(t, 1, count[Away()])
	assert.Equal(t, 1, count[css(calm)], "the background")
	assert.Equal(t, []string{"0", "1 min", "2 min", "3 min"}, texts(s)[:4])
}

// However far apart values are, the scale stays readable.
func TestScaleIsBounded(t *testing.T) {
	s := Dots("variance", "s²", []Dot{{Name: "first", Values: []float64{1e-30, 1e-8, 50}, All: 5}})
	assert.Equal(t, 3, strings.Count(strings.ToLower(string(s)), "stroke:"+Color(0)))
	assert.Contains(t, texts(s), "1e-07")
	assert.NotContains(t, texts(s), "1e-08")
	shapes(t, Bars("", []string{"a"}, []Bar{{Values: []float64{1e-30}, Marks: []float64{1e-20}}, {Values: []float64{1000}}}))
}

// A fleet of any size has a figure of bounded size, and not too many labels.
func TestStripOfMany(t *testing.T) {
	rows := make([][]float64, 1000)
	for i := range rows {
		rows[i] = []float64{0, float64(i % 2), 0}
	}
	s := Strip("many", 1, 3, rows, nil)
	assert.Less(t, len(texts(s)), 30)
	m := regexp.MustCompile(`viewBox="0 0 900 ([0-9]+)"`).FindStringSubmatch(string(s))
	require.NotNil(t, m)
	height, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	assert.LessOrEqual(t, height, 1600)
}

func TestArea(t *testing.T) {
	s := Area("imbalance", 60, 86400, []float64{0, 4, 100, 1}, 100, 3)
	assert.Equal(t, map[string]int{Color(3): 1}, shapes(t, s))
	assert.Equal(t, []string{"0", "3 h", "6 h", "9 h", "12 h", "15 h", "18 h", "21 h", "24 h", "0", "5", "20", "50", "100"}, texts(s))
	shapes(t, Area("nothing", 1, 1, nil, 0, 0))
}

func TestLines(t *testing.T) {
	s := Lines("levels", 10, []string{"one", "two"}, [][]float64{{1, 0.5, 0}, {1, 1, 1}})
	shapes(t, s)
	assert.Subset(t, texts(s), []string{"one", "two", "0", "5 s"})
	assert.Equal(t, 1, strings.Count(strings.ToLower(string(s)), "stroke:"+Color(0)))
}

// A file of its own names its series, in as many lines as they take.
func TestFile(t *testing.T) {
	s := Bars("waits", []string{"mean"}, []Bar{{Values: []float64{1}}, {Values: []float64{2}}})
	long := strings.Repeat("w", 140)
	text := s.File([]Key{{"first <b>", Color(0)}, {long, Color(1)}})
	assert.Subset(t, texts(SVG(text)), []string{"first &lt;b&gt;", long})
	for _, part := range []string{`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 270"`, `fill="` + Color(0) + `"/>`, `fill="` + Color(1) + `"/>`} {
		assert.Contains(t, text, part)
	}
	for _, text := range []string{text, s.File(nil), s.File(HeatKeys())} {
		dec := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := dec.Token(); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
	}
	assert.Contains(t, s.File(nil), `viewBox="0 0 900 230" font-family`)
}

func TestColorsDiffer(t *testing.T) {
	seen := map[string]int{}
	for i := range 40 {
		c := Color(i)
		before, twice := seen[c]
		assert.False(t, twice, "%d and %d are both %s", before, i, c)
		seen[c] = i
	}
	assert.Len(t, Heat(), shades+1)
	assert.Equal(t, css(calm), Heat()[0])
	assert.Equal(t, heat(1), heat(1.5), "a share beyond all is all")
	assert.Equal(t, heat(0), heat(-1))
}

func TestTicks(t *testing.T) {
	assert.Equal(t, "100 µs", seconds(1e-4))
	assert.Equal(t, "10 µs", seconds(1e-5))
	assert.Equal(t, "1 ms", seconds(1e-3))
	assert.Equal(t, "1 s", seconds(1))
	for _, end := range []float64{1, 90, 900, 7200, 86400, 1e6, 1e9} {
		p := newPlot()
		clock(&p.X, end)
		n := len(p.X.Tick.Marker.Ticks(0, end))
		assert.True(t, 2 <= n && n <= 101, "%d ticks up to %v s", n, end)
	}
	for _, top := range []float64{1e-5, 0.3, 1, 7, 1e9} {
		n := len(roots(top))
		assert.True(t, 3 <= n && n <= 6, "%d ticks up to %v", n, top)
	}
	for _, count := range []int{1, 12, 13, 500, 1500} {
		n := len(jobs(count))
		assert.True(t, 1 <= n && n <= 14, "%d labels of %d jobs", n, count)
	}
}

func TestTimeline(t *testing.T) {
	s := Timeline("jobs", []Span{{From: 0, To: 2}, {From: 1, To: 5, Partial: true}, {From: 2, Absent: true}},
		[]Band{{From: 0, To: 3, Shade: Flat}, {From: 3, To: 4, Shade: Bare}, {From: 4, To: 99, Shade: Losing}}, 6)
	count := shapes(t, s)
	assert.Equal(t, 1, count[css(shadeColors[Flat])])
	assert.Equal(t, 1, count[css(shadeColors[Losing])])
	assert.Zero(t, count[css(shadeColors[Growing])])
	assert.NotRegexp(t, `[ML][0-9]{4}`, string(s), "nothing is drawn beyond the figure's 900 points")
	for with, lines := range map[string]int{css(series(0)): 1, css(series(5)): 1, "#b01e28": 2} {
		assert.Equal(t, lines, strings.Count(strings.ToLower(string(s)), "stroke:"+with), with)
	}
}

func TestCurves(t *testing.T) {
	s := Curves("times", [][]float64{{1, 2, math.NaN(), 4, math.NaN(), 5, 6}, {3, 3, 3}}, []Band{{From: 0, To: 2, Shade: Growing}})
	count := shapes(t, s)
	assert.Equal(t, 1, count[css(shadeColors[Growing])])
	assert.Equal(t, 1, count[Color(0)], "a value between two gaps is a dot")
	assert.Equal(t, 2, strings.Count(strings.ToLower(string(s)), "stroke:"+Color(0)))
	assert.NotPanics(t, func() { Curves("none", [][]float64{{math.NaN()}}, nil) })
}

func TestSharesHaveALinearScale(t *testing.T) {
	s := Shares("slowdown", []string{"mean"}, []Bar{{Values: []float64{0.5}}})
	assert.Equal(t, 1, shapes(t, s)[Color(0)])
	assert.Contains(t, texts(s), "0.5")
}
