package deploy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	consul "github.com/hashicorp/consul/api"
	"github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/jobspec2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parse parses a job as the nomad command does.
func parse(text []byte) (*api.Job, error) {
	return jobspec2.ParseWithConfig(&jobspec2.ParseConfig{Path: "pilotfish.nomad.hcl", Body: text, Strict: true})
}

// nomadTasks returns the tasks of the sidecar and of the submitter.
func nomadTasks(t *testing.T) (sidecar, submitter *api.Task) {
	t.Helper()
	job, err := parse(read(t, "nomad", "pilotfish.nomad.hcl"))
	require.NoError(t, err)
	require.Len(t, job.TaskGroups, 1)
	require.Len(t, job.TaskGroups[0].Tasks, 2)
	return job.TaskGroups[0].Tasks[0], job.TaskGroups[0].Tasks[1]
}

// nomadSettings returns the sidecar's configuration, rendered as an allocation would.
func nomadSettings(t *testing.T) settings {
	t.Helper()
	sidecar, _ := nomadTasks(t)
	require.Len(t, sidecar.Templates, 1)
	known := map[string]string{
		"NOMAD_PORT_jobs": "8080", "NOMAD_ADDR_admin": "10.0.0.7:29180",
		"NOMAD_ALLOC_DIR": "/alloc", "NOMAD_SECRETS_DIR": "/secrets",
	}
	env := func(name string) string {
		require.Contains(t, known, name)
		return known[name]
	}
	tmpl, err := template.New("").Funcs(template.FuncMap{"env": env}).Parse(*sidecar.Templates[0].EmbeddedTmpl)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, tmpl.Execute(&text, nil))
	return configuration(t, text.Bytes())
}

func TestNomadTaskLifecycle(t *testing.T) {
	sidecar, submitter := nomadTasks(t)
	require.NotNil(t, sidecar.Lifecycle)
	assert.Equal(t, api.TaskLifecycle{Hook: api.TaskLifecycleHookPrestart, Sidecar: true}, *sidecar.Lifecycle)
	assert.Nil(t, submitter.Lifecycle)
	assert.Equal(t, "SIGTERM", sidecar.KillSignal)
	assert.Greater(t, *sidecar.KillTimeout, nomadSettings(t).grace(t), "accepted jobs are killed")
	assert.NotRegexp(t, `^(0|root)?(:|$)`, sidecar.User)
}

func TestNomadTemplate(t *testing.T) {
	sidecar, submitter := nomadTasks(t)
	s := nomadSettings(t)
	assert.Equal(t, "127.0.0.1:8080", s.Listen, "the job port leaves loopback")
	assert.Equal(t, "10.0.0.7:29180", s.Admin)
	assert.Equal(t, "ruleserver", s.Discovery.Consul.Service)
	assert.Equal(t, "/alloc/data/upstreams.json", s.Discovery.Snapshot, "only the data directory can be written by all users")
	assert.Equal(t, "http://127.0.0.1:${NOMAD_PORT_jobs}", submitter.Env["PILOTFISH_URL"])

	args, ok := sidecar.Config["args"].([]any)
	require.True(t, ok)
	assert.Equal(t, []any{"serve", "--config", "${NOMAD_TASK_DIR}/pilotfish.yaml"}, args)
	file := sidecar.Templates[0]
	assert.Equal(t, "local/pilotfish.yaml", *file.DestPath)
	assert.Equal(t, "signal", *file.ChangeMode)
	assert.Equal(t, "SIGHUP", *file.ChangeSignal)
}

func TestConsulChecksTheAdminPort(t *testing.T) {
	sidecar, _ := nomadTasks(t)
	require.Len(t, sidecar.Services, 1)
	service := sidecar.Services[0]
	assert.Equal(t, "admin", service.PortLabel)
	assert.Equal(t, api.ServiceProviderConsul, service.Provider)
	checks := map[string]bool{} // by path: whether a failure restarts the task
	for _, c := range service.Checks {
		require.Equal(t, "http", c.Type)
		assert.Less(t, c.Timeout, c.Interval)
		checks[c.Path] = c.CheckRestart != nil
	}
	assert.Equal(t, map[string]bool{"/healthz": true, "/readyz": false}, checks)
	assert.True(t, strings.HasPrefix(service.Meta["alloc"], "${NOMAD_"))
}

// readService decodes a service definition strictly as the type that the agent's API registers.
// A file has the API's names in lower case, with underscores.
func readService(text []byte) (*consul.AgentServiceRegistration, error) {
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
	var definition struct {
		Service *consul.AgentServiceRegistration
	}
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

// Discovery reads the metadata of the service definition.
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
