#!/usr/bin/env bash
# Submits the job on standard input: ./submit.sh <job.json >result
# curl --retry would send jobs again that have run: it takes 500, 502 and 504 for refusals.
set -u
url=${PILOTFISH_URL:-http://127.0.0.1:8080}/v1/jobs
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/job"

for attempt in 0 1 2 3 4; do
	response=$(curl --silent --show-error --output "$dir/result" --data-binary "@$dir/job" \
		--header 'Content-Type: application/json' \
		--write-out '%{http_code}|%header{retry-after}|%header{job-started}' "$url")
	code=$?
	IFS='|' read -r status after started <<<"$response"
	case $code:$status:$after:$started in
	0:200:*) cat "$dir/result"; exit 0 ;;
	7:*) after=0 ;;                              # connection refused
	0:429:[0-9]*:* | 0:503:[0-9]*:*) ;;          # nothing was done for the job
	0:429::no | 0:503::no | 0:503::withdrawn) after=0 ;;
	*) break ;;                                  # it has run, or may have, or is wrong
	esac
	[ "$attempt" = 4 ] && break
	wait=$((after > 2 ** attempt ? after : 2 ** attempt))
	echo "nothing was done; again in $wait s" >&2
	sleep "$wait"
done
cat "$dir/result" >&2
exit 1
