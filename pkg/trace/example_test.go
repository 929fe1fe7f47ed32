package trace_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

func ExampleReader() {
	const file = `{"offset":0,"project":12345,"priority":"high","load_s":1.9,"operators_s":0.8}
{"offset":0.5,"project":"shop","priority":"low","operators_s":2,"after":1}
{"offset":0.25,"project":"late"}
`
	r := trace.NewReader(strings.NewReader(file), "jobs.jsonl")
	for {
		job, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%v s: project %s, %v, %.1f core-seconds\n", job.Offset, job.Project, job.Priority, job.Work())
	}
	// Output:
	// 0 s: project 12345, high, 2.7 core-seconds
	// 0.5 s: project shop, low, 2.0 core-seconds
	// jobs.jsonl: line 3: field offset: 0.25 goes back in time: the line before has 0.5
}

func ExampleWriter() {
	w := trace.NewWriter(os.Stdout)
	for _, job := range []trace.Job{
		{Project: "12345", Priority: selection.High, Load: 1.9, Operators: 0.8},
		{Offset: 0.5, Project: "shop", Operators: 2, After: 1},
	} {
		if err := w.Write(&job); err != nil {
			panic(err)
		}
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	// Output:
	// {"offset":0,"project":12345,"priority":"high","kind":"process","load_s":1.9,"operators_s":0.8,"after":null}
	// {"offset":0.5,"project":"shop","priority":"low","kind":"process","operators_s":2,"after":1}
}
