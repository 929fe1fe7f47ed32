package browser

import (
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page of a scenario needs no other file, and each figure has content.
func TestFiguresOfAScenario(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out, err := exec.Command("go", "-C", "../../lab", "run", "./cmd/tracelab", "simulate", "../testdata/scenarios/small.yaml", "--html", page).CombinedOutput()
	require.NoError(t, err, "%s", out)
	b := visit(t, (&url.URL{Scheme: "file", Path: page}).String(), "body[data-drawn]", 1300, 1000, "light")
	b.shot("figures")
	assert.Equal(t, "30", eval[string](b, `document.body.dataset.drawn`), "10 of all runs, and 4 of each of 5")
	assert.Empty(t, eval[[]string](b, `[...document.querySelectorAll("figure")].filter((f) => {
		const c = f.querySelector("canvas"), pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let colored = 0;
		for (let i = 0; i < pixels.length; i += 4) {
			const rgb = [pixels[i], pixels[i + 1], pixels[i + 2]];
			if (pixels[i + 3] > 200 && Math.max(...rgb) - Math.min(...rgb) > 60) colored++;
		}
		return colored < 50;
	}).map((f) => f.querySelector("figcaption").textContent)`), "these are empty")
	b.do(chromedp.EmulateViewport(390, 844), chromedp.Reload(), chromedp.WaitReady("body[data-drawn]"))
	assert.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 390, "a narrow screen")
}
