//go:build ignore

// Submits the job on standard input: go run submit.go <job.json >result
package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"
)

func submit(job []byte) (*http.Response, error) {
	url := cmp.Or(os.Getenv("PILOTFISH_URL"), "http://127.0.0.1:8080") + "/v1/jobs"
	for attempt := 0; ; attempt++ {
		wait := 1 << attempt
		response, err := http.Post(url, "application/json", bytes.NewReader(job))
		switch {
		case attempt == 4:
			return response, err
		case errors.Is(err, syscall.ECONNREFUSED):
		case err != nil:
			return nil, err // the job may have run
		default:
			after := response.Header.Get("Retry-After")
			started := response.Header.Get("Job-Started")
			undone := after != "" || started == "no" || started == "withdrawn"
			refused := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
			if !refused || !undone {
				return response, nil
			}
			_ = response.Body.Close()
			if seconds, err := strconv.Atoi(after); err == nil {
				wait = max(wait, seconds)
			}
		}
		log.Printf("nothing was done; again in %d s", wait)
		time.Sleep(time.Duration(wait) * time.Second)
	}
}

func main() {
	job, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	response, err := submit(job)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	result, err := io.ReadAll(response.Body) // fails if the response was truncated
	if err != nil || response.StatusCode != http.StatusOK {
		log.Fatalf("%s %v\n%s", response.Status, err, result)
	}
	_, _ = os.Stdout.Write(result)
}
