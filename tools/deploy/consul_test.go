package deploy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readService decodes a service definition strictly as the type that the agent's API registers.
// A file has the API's names in lower case, with underscores.
func readService(text []byte) (*api.AgentServiceRegistration, error) {
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(apiNames(file))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	var definition struct{ Service *api.AgentServiceRegistration }
	return definition.Service, dec.Decode(&definition)
}

// apiNames removes the underscores from all keys, except those of the service's metadata.
func apiNames(of map[string]any) map[string]any {
	named := map[string]any{}
	for key, value := range of {
		if inner, ok := value.(map[string]any); ok && key != "meta" {
			value = apiNames(inner)
		}
		named[strings.ReplaceAll(key, "_", "")] = value
	}
	return named
}

func TestServiceDefinition(t *testing.T) {
	s, err := readService(read(t, "consul", "ruleserver.json"))
	require.NoError(t, err)
	assert.Equal(t, "ruleserver", s.Name)
	assert.Positive(t, s.Port)
	assert.Positive(t, s.Weights.Passing)

	require.NotNil(t, s.Check)
	assert.Equal(t, "http://127.0.0.1:"+strconv.Itoa(s.Port)+"/healthz", s.Check.HTTP)
	for name, d := range map[string]string{
		"interval": s.Check.Interval, "timeout": s.Check.Timeout, "deregister": s.Check.DeregisterCriticalServiceAfter,
	} {
		parsed, err := time.ParseDuration(d)
		require.NoError(t, err, name)
		assert.Positive(t, parsed, name)
	}
}

// Discovery reads the metadata of the service definition.
func TestServiceMetadataForDiscovery(t *testing.T) {
	s, err := readService(read(t, "consul", "ruleserver.json"))
	require.NoError(t, err)
	cores, err := strconv.Atoi(s.Meta["cores"])
	require.NoError(t, err)
	assert.Positive(t, cores)
	_, err = time.Parse(time.RFC3339, s.Meta["started_at"])
	require.NoError(t, err)
	for _, key := range []string{"preemptible", "draining"} {
		_, err := strconv.ParseBool(s.Meta[key])
		require.NoError(t, err, key)
	}
	assert.Len(t, s.Meta, 4)
}
