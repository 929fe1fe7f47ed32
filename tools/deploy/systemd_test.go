package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// units copies the units to where they can be verified, with the path of the built
// program instead of the installed one, and one change.
func units(t *testing.T, old, changed string) (service string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pilotfish.socket", "pilotfish.service"} {
		text := strings.ReplaceAll(string(read(t, "systemd", name)), "/usr/bin/pilotfish", pilotfish)
		writeTo(t, filepath.Join(dir, name), []byte(strings.Replace(text, old, changed, 1)))
	}
	return filepath.Join(dir, "pilotfish.service")
}

func writeTo(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	service := units(t, "", "")
	out, err := run("systemd-analyze", "verify", "--man=no", service, strings.TrimSuffix(service, "service")+"socket")
	require.NoError(t, err, out)
	assert.Empty(t, out, "nor is there a warning")
}

// systemd rates the exposure of a service from 0 to 100: what it could do if an attacker
// controlled it.
func TestServiceExposure(t *testing.T) {
	must(t, "systemd-analyze", "security", "--offline=true", "--threshold=15", units(t, "", ""))
	_, err := run("systemd-analyze", "security", "--offline=true", "--threshold=15", units(t, "RestrictNamespaces=yes\n", ""))
	assert.Error(t, err, "the threshold leaves room to do without")
}

func TestServiceStopTimeoutExceedsGrace(t *testing.T) {
	stop, err := time.ParseDuration(setting(t, "pilotfish.service", "TimeoutStopSec"))
	require.NoError(t, err)
	assert.Greater(t, stop, 2*time.Minute, "the default of shutdown.grace")
	assert.Equal(t, "127.0.0.1:8080", setting(t, "pilotfish.socket", "ListenStream"), "the default of listen")
}
