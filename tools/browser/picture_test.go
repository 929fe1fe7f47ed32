//go:build picture

package browser

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// TestPictureOfAKilledServer draws docs/killed.png, the README's picture: the page while one of four
// servers is killed under load.
func TestPictureOfAKilledServer(t *testing.T) {
	var servers []*fakeupstream.Upstream
	var addresses []string
	for range 4 {
		u := fakeupstream.New(t, fakeupstream.Options{Cost: "fetch=400ms,operators=150ms"})
		servers, addresses = append(servers, u), append(addresses, u.Address())
	}
	s := serve(t, addresses, "reports: {interval: 1s}\n")
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for n := int64(0); ctx.Err() == nil; n++ {
			go func() { _, _ = s.work(ctx, n, fmt.Sprint("tenant-", n%9)) }()
			time.Sleep(50 * time.Millisecond)
		}
	}()
	b := open(t, s, 1280, 960, "light")
	time.Sleep(70 * time.Second) // a chart has one point per ten seconds
	servers[2].Kill()
	time.Sleep(40 * time.Second)
	minute := get[fleet](t, s, "/api/now").Fleet.Windows[0].All
	require.Equal(t, minute.Jobs, minute.Complete, "no job may be lost: %+v", minute)
	b.afterNext()
	image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("../../docs/killed.png", image, 0o644))
}
