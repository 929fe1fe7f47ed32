#!/usr/bin/env bash
# Runs a server and registers it with the Consul agent: ./consul.sh PORT python3 upstream.py PORT
set -u
port=$1 agent=${CONSUL_HTTP_ADDR:-127.0.0.1:8500}
shift

put() { curl --silent --show-error --fail --request PUT --data "${2-}" "http://$agent/v1/agent/service/$1"; }

register() { # whether the server drains
	put register "{\"ID\": \"ruleserver-$port\", \"Name\": \"ruleserver\", \"Address\": \"127.0.0.1\", \"Port\": $port,
		\"Meta\": {\"cores\": \"$(nproc)\", \"draining\": \"$1\"}}"
}

"$@" &
trap 'register true; kill "$!"' TERM INT # no new jobs; the open ones end
register false
while kill -0 "$!" 2>/dev/null; do wait "$!"; done # a signal ends a wait, too
put "deregister/ruleserver-$port"
wait "$!" # its exit code
