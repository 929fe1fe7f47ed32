package discovery

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.org/pilotfish/test/certs"
)

// apiServer speaks as much of a Kubernetes API as discovery asks for.
type apiServer struct {
	t *testing.T

	mu      sync.Mutex
	version int
	slices  []object
	status  int // of the next replies; 0 is 200
	hostile func(http.ResponseWriter)
	asked   []string   // queries, without the selector
	events  chan []any // the events of one watch; a nil ends it
}

// newAPIServer starts one, and returns the settings of who asks it.
func newAPIServer(t *testing.T) (*apiServer, Kubernetes) {
	t.Helper()
	a := &apiServer{t: t, version: 7, events: make(chan []any, 10)}
	server := httptest.NewTLSServer(a) // client-go shows a token by TLS only
	t.Cleanup(server.Close)
	k := Kubernetes{Service: "ruleserver", Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	require.NoError(t, os.WriteFile(k.Kubeconfig, fmt.Appendf(nil, `{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": [{"name": "test", "cluster": {"server": %q, "certificate-authority-data": %q}}],
		"users": [{"name": "test", "user": {"token": "s3cret"}}],
		"contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "rules"}}]}`, server.URL, base64.StdEncoding.EncodeToString(certs.PEM(server.Certificate().Raw))), 0o600))
	return a, k
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	assert.Equal(a.t, "/apis/discovery.k8s.io/v1/namespaces/rules/endpointslices", r.URL.Path)
	assert.Equal(a.t, "kubernetes.io/service-name=ruleserver", q.Get("labelSelector"))
	assert.Equal(a.t, "Bearer s3cret", r.Header.Get("Authorization"))
	q.Del("labelSelector")
	a.mu.Lock()
	a.asked = append(a.asked, q.Encode())
	status, list := a.status, object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList",
		"metadata": object{"resourceVersion": fmt.Sprint(a.version)}, "items": a.slices,
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.hostile != nil:
		a.hostile(w)
	case status != 0:
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(failure(status))
	case q.Get("watch") == "":
		_ = json.NewEncoder(w).Encode(list)
	default:
		_ = http.NewResponseController(w).Flush()
		select {
		case events := <-a.events:
			for _, e := range events {
				if e == nil {
					return
				}
				_ = json.NewEncoder(w).Encode(e)
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}
}

func failure(code int) metav1.Status {
	reason := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 410: metav1.StatusReasonExpired}[code]
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason, Message: "no such luck",
	}
}

// event is one line of a watch.
func event(kind string, object any) any { return map[string]any{"type": kind, "object": object} }

// object is a part of what an API server writes.
type object = map[string]any

// slice is one EndpointSlice of a family with endpoints that endpoint makes.
func slice(name, version, family string, endpoints ...object) object {
	return object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
		"metadata":    object{"name": name, "namespace": "rules", "resourceVersion": version},
		"addressType": family, "endpoints": endpoints,
		"ports": []object{{"name": "http", "port": 9001, "protocol": "TCP"}},
	}
}

// endpoint is that of a pod. Its state is "ready", "serving" while it terminates,
// "ended", "starting", or "" where nothing is said.
func endpoint(pod, address, state string) object {
	e := object{"addresses": []string{address}, "conditions": object{}}
	if pod != "" {
		e["targetRef"] = object{"kind": "Pod", "name": pod, "uid": pod}
	}
	if state != "" {
		e["conditions"] = object{
			"ready": state == "ready", "serving": state == "ready" || state == "serving", "terminating": state == "serving" || state == "ended",
		}
	}
	return e
}

// listed returns the addresses of a reply.
func listed(t *testing.T, k *kubernetes) string {
	t.Helper()
	r, err := k.query(t.Context(), 0)
	require.NoError(t, err)
	return names(arrange(r.upstreams, own{}))
}

// A pod is one upstream whatever addresses it has, drains while it serves and
// terminates, and is none before it is ready and after it has ended.
func TestEndpointSlices(t *testing.T) {
	a, cfg := newAPIServer(t)
	a.slices = []object{
		slice("v6", "1", "IPv6", endpoint("a", "fd00::1", "ready"), endpoint("f", "fd00::6", "ready")),
		slice("v4", "1", "IPv4",
			endpoint("a", "10.0.0.1", "ready"), endpoint("b", "10.0.0.2", "serving"), endpoint("c", "10.0.0.3", "ended"),
			endpoint("d", "10.0.0.4", "starting"), endpoint("e", "10.0.0.5", "")),
		slice("moved", "1", "IPv4", endpoint("a", "10.0.0.1", "ready"), endpoint("", "10.0.0.9", "ready")),
	}
	assert.Equal(t, "10.0.0.1:9001 (10.0.0.2:9001) 10.0.0.5:9001 10.0.0.9:9001 [fd00::6]:9001", listed(t, &kubernetes{cfg: cfg}))
}

// Where a service has several ports, the one that is named counts.
func TestPortsOfASlice(t *testing.T) {
	a, cfg := newAPIServer(t)
	s := slice("one", "1", "IPv4", endpoint("a", "10.0.0.1", "ready"))
	s["ports"] = append(s["ports"].([]object), object{"name": "metrics", "port": 9100}, object{"name": "udp", "port": 53, "protocol": "UDP"})
	a.slices = []object{s}
	for name, want := range map[string]string{"http": "10.0.0.1:9001", "metrics": "10.0.0.1:9100"} {
		cfg.Port = name
		assert.Equal(t, want, listed(t, &kubernetes{cfg: cfg}))
	}
	s["ports"] = append([]object{{"name": "gossip", "port": 53, "protocol": "UDP"}}, s["ports"].([]object)[0])
	cfg.Port = ""
	assert.Equal(t, "10.0.0.1:9001", listed(t, &kubernetes{cfg: cfg}), "its only TCP port")
	s["ports"] = append(s["ports"].([]object), object{"name": "metrics", "port": 9100})
	for name, flaw := range map[string]string{
		"":       `slice "one": the service has the TCP ports ["http" "metrics"]: name one with port`,
		"gossip": `slice "one": the service has no TCP port "gossip", but ["http" "metrics"]`,
	} {
		cfg.Port = name
		r, err := (&kubernetes{cfg: cfg}).query(t.Context(), 0)
		require.NoError(t, err)
		assert.Empty(t, r.upstreams)
		assert.EqualError(t, r.skipReason, flaw)
	}
}

// After the list, watches report changes, each from the version at which the last one ended.
func TestWatches(t *testing.T) {
	a, cfg := newAPIServer(t)
	a.slices = []object{slice("one", "5", "IPv4", endpoint("a", "10.0.0.1", "ready"))}
	k := &kubernetes{cfg: cfg}
	assert.Equal(t, "10.0.0.1:9001", listed(t, k))

	a.events <- []any{
		event("MODIFIED", slice("one", "8", "IPv4", endpoint("a", "10.0.0.1", "serving"))),
		event("ADDED", slice("two", "9", "IPv4", endpoint("b", "10.0.0.2", "ready"))),
	}
	assert.Equal(t, "(10.0.0.1:9001) 10.0.0.2:9001", listed(t, k))
	a.events <- []any{event("DELETED", slice("one", "10", "IPv4"))}
	assert.Equal(t, "10.0.0.2:9001", listed(t, k))
	a.events <- []any{event("BOOKMARK", slice("", "20", "")), nil}
	assert.Equal(t, "10.0.0.2:9001", listed(t, k), "a watch that ends without a change confirms what is known")
	a.events <- []any{event("ERROR", failure(410))}
	a.mu.Lock()
	a.version, a.slices = 30, []object{slice("three", "30", "IPv4", endpoint("c", "10.0.0.3", "ready"))}
	a.mu.Unlock()
	assert.Equal(t, "10.0.0.3:9001", listed(t, k), "the list replaces what was known")

	watched := "allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=300&watch=true"
	assert.Equal(t, []string{
		"", fmt.Sprintf(watched, 7), fmt.Sprintf(watched, 9), fmt.Sprintf(watched, 10), fmt.Sprintf(watched, 20), "",
	}, a.asked)
	a.events <- []any{nil}
	_, err := k.query(t.Context(), 90*time.Second)
	require.NoError(t, err)
	assert.Contains(t, a.asked[6], "resourceVersion=30&timeoutSeconds=90", "a doubt is confirmed in time")
}

// The resource versions of a cluster that was restored from a backup are older, and a watch that continues at a newer one
// reports nothing. So the slices are listed again after some time.
func TestARestoredCluster(t *testing.T) {
	a, cfg := newAPIServer(t)
	a.version, a.slices = 1200, []object{slice("one", "1200", "IPv4", endpoint("a", "10.0.0.1", "ready"))}
	k := &kubernetes{cfg: cfg}
	assert.Equal(t, "10.0.0.1:9001", listed(t, k))
	a.mu.Lock()
	a.version, a.slices = 1001, []object{slice("one", "1001", "IPv4", endpoint("b", "10.0.0.2", "ready"))}
	a.mu.Unlock()
	a.events <- []any{nil}
	assert.Equal(t, "10.0.0.1:9001", listed(t, k))
	k.listed = k.listed.Add(-listAgain)
	assert.Equal(t, "10.0.0.2:9001", listed(t, k))
	a.events <- []any{nil}
	assert.Equal(t, "10.0.0.2:9001", listed(t, k))
	assert.Contains(t, a.asked[3], "resourceVersion=1001&")
}

// A failure says nothing of the upstreams; the next reply is a list.
func TestFailuresOfAnAPIServer(t *testing.T) {
	a, cfg := newAPIServer(t)
	k := &kubernetes{cfg: cfg}
	fails := func(why string) {
		t.Helper()
		_, err := k.query(t.Context(), 0)
		require.ErrorContains(t, err, "the Kubernetes API gives no reply: ")
		require.ErrorContains(t, err, why)
	}
	say := func(status int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.status = status
	}
	say(403)
	fails("no such luck")
	say(0)
	assert.Equal(t, "-", listed(t, k))
	say(503)
	fails("no such luck")
	say(0)
	listed(t, k)
	a.events <- []any{event("ERROR", failure(500))}
	fails("no such luck")
	listed(t, k)
	a.events <- []any{event("MODIFIED", failure(200))}
	fails("a *v1.Status is among the EndpointSlices")
}

// One query is one request to one server, whatever the server replies: the pacer decides when the next one comes, and each
// carries the token.
func TestAnAPIServerDoesNotSteerTheClient(t *testing.T) {
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Error("redirected, with " + r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for why, hostile := range map[string]func(http.ResponseWriter){
		"the server is currently unable to handle the request": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"status code 307": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	} {
		a, cfg := newAPIServer(t)
		a.hostile = hostile
		_, err := (&kubernetes{cfg: cfg}).query(t.Context(), 0)
		assert.ErrorContains(t, err, why)
		assert.Len(t, a.asked, 1)
	}
}

func TestAKubeconfigThatCannotBeUsed(t *testing.T) {
	_, cfg := newAPIServer(t)
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(broken, []byte("clusters: 7"), 0o600))
	for path, why := range map[string]string{broken: "cannot unmarshal", broken + ".gone": "no such file", "/dev/zero": "/dev/zero is not a regular file"} {
		cfg.Kubeconfig = path
		err := faultOf(Settings{Kubernetes: &cfg})
		assert.ErrorContains(t, err, "discovery.kubernetes.kubeconfig: ")
		assert.ErrorContains(t, err, why)
	}
	cfg.Kubeconfig = ""
	_, err := New(configOf(Settings{Kubernetes: &cfg}))
	require.NoError(t, err, "the configuration of a pod can be checked elsewhere")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err = (&kubernetes{cfg: cfg}).query(t.Context(), 0)
	assert.EqualError(t, err, "the Kubernetes API gives no reply: this process does not run in a pod of a cluster: set kubeconfig to a file")
}
