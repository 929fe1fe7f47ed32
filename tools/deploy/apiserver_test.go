//go:build kubernetes

package deploy

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"example.org/pilotfish/test/program"
)

// patience is the maximum duration of a wait.
const patience = 2 * time.Minute

// daemon runs a program until the test ends.
func daemon(t *testing.T, name string, args ...string) {
	t.Helper()
	program.Spawn(t, filepath.Join(t.TempDir(), "log"), name, args...)
}

// The tokens of the two clients of the API server.
const (
	adminToken   = "admin-token"
	sidecarToken = "sidecar-token" // of the service account
)

// apiServer starts a real API server with etcd, and returns its client configuration.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	require.NoError(t, err)
	folder, store, peers, api := t.TempDir(), "http://"+free(t), "http://"+free(t), free(t)
	_, port, err := net.SplitHostPort(api)
	require.NoError(t, err)
	daemon(t, filepath.Join(bin, "etcd"), "--data-dir", filepath.Join(folder, "etcd"), "--log-level", "error",
		"--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", peers,
		"--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)

	require.Eventually(t, func() bool { // the API server exits if etcd does not serve soon
		response, err := http.Get(store + "/health")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, patience, 200*time.Millisecond)

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keyFile := write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	tokens := write(t, "tokens.csv", []byte(adminToken+",admin,1,system:masters\n"+
		sidecarToken+",system:serviceaccount:pilotfish:default,2,system:serviceaccounts\n"))
	daemon(t, filepath.Join(bin, "kube-apiserver"), "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--advertise-address", "192.0.2.1", // otherwise it searches for an address, and fails on a machine without a default route
		"--cert-dir", filepath.Join(folder, "certs"), "--token-auth-file", tokens, "--authorization-mode", "RBAC",
		"--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount", // no controller creates tokens here
		"--service-account-issuer", "https://kubernetes.test", "--service-account-key-file", keyFile, "--service-account-signing-key-file", keyFile)

	conf := &rest.Config{
		Host: "https://" + api, BearerToken: adminToken,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, // the certificate is self-signed
	}
	client, err := kubernetes.NewForConfig(conf)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	}, patience, 200*time.Millisecond)
	return conf
}

// apply creates the objects of the folder, like a first kubectl apply -k. An unknown field is
// an error.
func apply(t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	for _, r := range kustomized(t).Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal(text, &o.Object))
		kind, err := schema.ParseGroupVersion(o.GetAPIVersion())
		require.NoError(t, err)
		resources := strings.ToLower(o.GetKind()) + "s"
		if o.GetKind() == "NetworkPolicy" {
			resources = "networkpolicies"
		}
		path := "/apis/" + kind.String()
		if kind.Group == "" {
			path = "/api/" + kind.Version
		}
		if o.GetNamespace() != "" {
			path += "/namespaces/" + o.GetNamespace()
		}
		body, err := json.Marshal(o.Object)
		require.NoError(t, err)
		_, err = client.CoreV1().RESTClient().Post().AbsPath(path+"/"+resources).Param("fieldValidation", "Strict").
			SetHeader("Content-Type", "application/json").Body(body).DoRaw(t.Context())
		require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
	}
}

// A real API server accepts the folder, and with the permissions of the folder a sidecar
// follows the EndpointSlices of its service. No controller runs here, so the test writes the
// slices.
func TestKubernetesAcceptsTheFolder(t *testing.T) {
	conf := apiServer(t)
	client, err := kubernetes.NewForConfig(conf)
	require.NoError(t, err)
	apply(t, client)
	pods, err := client.AppsV1().Deployments("pilotfish").List(t.Context(), meta.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, pods.Items, 2)

	yes, no := true, false
	name, port, tcp := "http", int32(9001), core.ProtocolTCP
	endpoint := func(pod, address string, terminating *bool) discovery.Endpoint {
		ready := terminating == &no
		return discovery.Endpoint{
			Addresses: []string{address}, TargetRef: &core.ObjectReference{Kind: "Pod", Name: pod, UID: types.UID(pod)},
			Conditions: discovery.EndpointConditions{Ready: &ready, Serving: &yes, Terminating: terminating},
		}
	}
	slices := client.DiscoveryV1().EndpointSlices("pilotfish")
	four, err := slices.Create(t.Context(), &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Name: "four", Labels: map[string]string{discovery.LabelServiceName: "ruleserver"}},
		AddressType: discovery.AddressTypeIPv4, Ports: []discovery.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
		Endpoints: []discovery.Endpoint{endpoint("a", "10.1.0.1", &no), endpoint("b", "10.1.0.2", &no)},
	}, meta.CreateOptions{})
	require.NoError(t, err)
	_, err = slices.Create(t.Context(), &discovery.EndpointSlice{
		ObjectMeta:  meta.ObjectMeta{Name: "six", Labels: map[string]string{discovery.LabelServiceName: "ruleserver"}},
		AddressType: discovery.AddressTypeIPv6, Ports: []discovery.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
		Endpoints: []discovery.Endpoint{endpoint("a", "fd00::1", &no), endpoint("c", "fd00::3", &no)},
	}, meta.CreateOptions{})
	require.NoError(t, err)

	upstreams := follow(t, conf.Host)
	await(t, upstreams, "10.1.0.1:9001 10.1.0.2:9001 [fd00::3]:9001")
	four.Endpoints[1] = endpoint("b", "10.1.0.2", &yes)
	four, err = slices.Update(t.Context(), four, meta.UpdateOptions{})
	require.NoError(t, err)
	await(t, upstreams, "10.1.0.1:9001 (10.1.0.2:9001) [fd00::3]:9001")
	four.Endpoints = four.Endpoints[:1]
	_, err = slices.Update(t.Context(), four, meta.UpdateOptions{})
	require.NoError(t, err)
	await(t, upstreams, "10.1.0.1:9001 [fd00::3]:9001")
}

// follow starts a sidecar with the folder's discovery as its service account. It returns a
// function that returns the upstreams; those that drain are in parentheses.
func follow(t *testing.T, server string) func() string {
	t.Helper()
	kubeconfig := write(t, "kubeconfig", fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": [{"name": "test", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}],
		"users": [{"name": "test", "user": {"token": %q}}],
		"contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "pilotfish"}}]}`, server, sidecarToken))
	admin := free(t)
	service := kubernetesSettings(t).Discovery.Kubernetes.Service
	daemon(t, pilotfish, "serve", "--config", write(t, "pilotfish.yaml", fmt.Appendf(nil,
		"listen: 127.0.0.1:0\nadmin: %s\ndiscovery: {kubernetes: {service: %s, kubeconfig: %s}}\n", admin, service, kubeconfig)))
	return func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/api/upstreams", nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		var shown struct {
			Upstreams []struct {
				Address  string
				Draining bool
			}
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&shown))
		var all []string
		for _, u := range shown.Upstreams {
			if u.Draining {
				u.Address = "(" + u.Address + ")"
			}
			all = append(all, u.Address)
		}
		return strings.Join(all, " ")
	}
}

// await waits until the upstreams are as wanted.
func await(t *testing.T, shown func() string, want string) {
	t.Helper()
	last := ""
	if !assert.Eventually(t, func() bool { last = shown(); return last == want }, patience, 100*time.Millisecond) {
		t.Fatalf("the upstreams are %q, not %q", last, want)
	}
}
