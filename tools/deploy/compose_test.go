package deploy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// The parts of the compose file are consistent: mounts, requested paths, images and addresses.
// The syntax is checked by Docker.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Build   struct{ Context, Target string }
			Command []string
			Volumes []string
			Ports   []string
			Grace   string                  `json:"stop_grace_period"`
			Health  struct{ Test []string } `json:"healthcheck"`
		}
	}
	require.NoError(t, yaml.Unmarshal(read(t, "compose", "compose.yaml"), &compose))
	dockerfile := string(read(t, "..", "Dockerfile"))
	for name, s := range compose.Services {
		assert.Contains(t, dockerfile, "AS "+s.Build.Target+"\n", name)
		assert.FileExists(t, filepath.Join(root, "deploy", "compose", s.Build.Context, "Dockerfile"))
		for _, v := range s.Volumes {
			from, rest, _ := strings.Cut(v, ":")
			at, _, _ := strings.Cut(rest, ":")
			there, err := filepath.Glob(filepath.Join(root, "deploy", "compose", from))
			require.NoError(t, err)
			assert.Len(t, there, 1, from)
			assert.Contains(t, s.Command, at, "%s: what is mounted is used", name)
		}
		for _, p := range s.Ports {
			assert.True(t, strings.HasPrefix(p, "127.0.0.1:"), "%s is open to other machines", p)
		}
	}
	fish := compose.Services["pilotfish"]
	assert.Equal(t, []string{"CMD", "/pilotfish", "probe"}, fish.Health.Test)
	s := configuration(t, read(t, "compose", "pilotfish.yaml"))
	name, _, _ := strings.Cut(s.Discovery.DNS, ":")
	assert.Contains(t, compose.Services, name)
	assert.Contains(t, strings.Join(fish.Ports, " "), s.Admin)
	assert.Equal(t, "130s", fish.Grace)
	assert.Equal(t, "2m", s.Shutdown.Grace)
}
