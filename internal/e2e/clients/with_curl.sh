#!/usr/bin/env bash
# The checks of checks.py by curl.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
curl=(curl --silent --show-error --max-time 60 -H 'Content-Type: application/json')
version=$(curl --version | awk 'NR == 1 { print $2 }')

fail() { echo "curl: $*" >&2; exit 1; }
equal() { [ "$1" = "$2" ] || fail "$3: got '$1', want '$2'"; }
passed() { echo "curl $version: $1"; }

# control WHAT asks the upstreams; it fails for what does not come about.
control() { curl --silent --show-error --fail --max-time 60 "$CONTROL/$1"; }
unseen() { equal "$(curl --silent -o /dev/null -w '%{http_code}' "$CONTROL/seen/$1")" 404 "upstream"; }

job() {
	"${curl[@]}" --fail -H 'Accept: text/csv' --data-binary "@$JOB" "$SIDECAR/v1/jobs" >"$dir/table"
	cmp "$dir/table" "$TABLE" || fail "the answer is not as without pilotfish"
	passed "job"
}

refused() {
	"${curl[@]}" -D "$dir/head" -o /dev/null -H 'Probe-Id: curl-refused' --data '{"project_id": 1' "$SIDECAR/probe/echo"
	grep -qi '^HTTP/1.1 400 ' "$dir/head" || fail "refused: $(cat "$dir/head")"
	grep -qi '^Pilotfish-Reason: malformed-job' "$dir/head" || fail "refused: $(cat "$dir/head")"
	unseen curl-refused
	passed "refused"
}

keep_alive() {
	local urls=() opened
	for _ in {1..20}; do urls+=(-o /dev/null "$SIDECAR/probe/echo"); done
	opened=$("${curl[@]}" --fail -w '%{num_connects}\n' --data '{"project_id": 1}' "${urls[@]}" | awk '{ n += $1 } END { print n }')
	equal "$opened" 1 "connections"
	passed "keep_alive"
}

chunked() {
	{ printf '{"project_id": 7, "pad": "'; head -c 3145728 /dev/zero | tr '\0' x; printf '"}'; } >"$dir/body"
	"${curl[@]}" --fail -H 'Probe-Id: curl-chunked' -H 'Transfer-Encoding: chunked' -X POST -T - \
		"$SIDECAR/probe/echo" <"$dir/body" >"$dir/answer"
	cmp "$dir/answer" "$dir/body" || fail "the answer is not the body"
	control seen/curl-chunked | grep -q "$(sha256sum <"$dir/body" | cut -d' ' -f1)" || fail "another body arrived"
	passed "chunked"
}

encoding() {
	local body='{"project_id": 7, "pad": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'
	"${curl[@]}" --fail -D "$dir/head" -H 'Accept-Encoding: gzip' --data "$body" "$SIDECAR/probe/echo" >"$dir/answer"
	grep -qi '^Content-Encoding: gzip' "$dir/head" || fail "encoding: $(cat "$dir/head")"
	equal "$(gunzip <"$dir/answer")" "$body" "compressed answer"
	"${curl[@]}" --fail -D "$dir/head" -H 'Probe-Id: curl-encoding' --data "$body" "$SIDECAR/probe/echo" >"$dir/answer"
	grep -qi '^Content-Encoding' "$dir/head" && fail "encoding: $(cat "$dir/head")"
	equal "$(cat "$dir/answer")" "$body" "plain answer"
	control seen/curl-encoding | grep -q '"accept_encoding":null' || fail "an Accept-Encoding arrived that was not sent"
	passed "encoding"
}

# open PROBE starts to stream an answer, to be read from descriptor 3.
open() {
	rm -f "$dir/pipe"
	mkfifo "$dir/pipe"
	"${curl[@]}" --fail --no-buffer -H "Probe-Id: $1" --data '{"project_id": 7}' "$SIDECAR/probe/stream" >"$dir/pipe" &
	exec 3<"$dir/pipe"
}

streaming() {
	local piece
	open curl-streaming
	for n in {0..4}; do
		read -r -t 60 piece <&3
		equal "$piece" "piece $n" "piece"
		control release/curl-streaming
	done
	wait $! || fail "the answer did not end well"
	equal "$(cat <&3)" "" "end"
	control idle
	passed "streaming"
}

leaving_the_answer() {
	local piece
	open curl-leaving
	read -r -t 60 piece <&3
	equal "$piece" "piece 0" "piece"
	kill $!
	control cancelled/curl-leaving
	control idle
	passed "leaving_the_answer"
}

leaving_the_upload() {
	rm -f "$dir/pipe"
	mkfifo "$dir/pipe"
	"${curl[@]}" -H 'Probe-Id: curl-upload' -H 'Transfer-Encoding: chunked' -X POST -T - "$SIDECAR/probe/echo" <"$dir/pipe" &
	exec 4>"$dir/pipe"
	{ printf '{"project_id": 7, "pad": "'; head -c 200000 /dev/zero | tr '\0' x; } >&4
	control uploading
	kill $!
	exec 4>&-
	control idle
	unseen curl-upload
	passed "leaving_the_upload"
}

for check in job refused keep_alive chunked encoding streaming leaving_the_answer leaving_the_upload job; do $check; done
