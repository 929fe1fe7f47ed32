package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// pilotfish is the program, which TestMain builds.
var pilotfish string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pilotfish-deploy-")
	if err != nil {
		panic(err)
	}
	pilotfish = filepath.Join(dir, "pilotfish")
	build := exec.Command("go", "build", "-o", pilotfish, "./cmd/pilotfish")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// settings is the part of a configuration that other files must be consistent with.
type settings struct {
	Listen, Admin string
	Discovery     struct {
		DNS        string
		Snapshot   string
		Kubernetes struct {
			Service, Namespace string
		}
		Consul struct {
			Address, Service string
		}
	}
	Shutdown struct{ Grace string }
}

// configuration lets pilotfish check a configuration, and decodes it.
func configuration(t *testing.T, text []byte) settings {
	t.Helper()
	must(t, pilotfish, "check", write(t, "pilotfish.yaml", text))
	var s settings
	require.NoError(t, yaml.Unmarshal(text, &s))
	return s
}

func (s settings) grace(t *testing.T) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s.Shutdown.Grace)
	require.NoError(t, err)
	return d
}
