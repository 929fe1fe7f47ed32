package fakeupstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"example.org/pilotfish/pkg/fakeupstream"
)

// A test would call fakeupstream.New(t, …), which needs no error handling and no
// Close.
func Example() {
	up, err := fakeupstream.Start(fakeupstream.Options{})
	if err != nil {
		panic(err)
	}
	defer up.Close()

	up.SetFault(fakeupstream.Fault{Status: 503, Body: "not now\n", Times: 1})
	for range 2 {
		response, err := http.Post(up.URL+"/v1/jobs", "application/json", strings.NewReader(fakeupstream.ExampleJob()))
		if err != nil {
			panic(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Printf("%s\n%s", response.Status, body)
	}
	fmt.Println(len(up.Jobs()), "jobs, the same body:", string(up.Jobs()[0].Body) == string(up.Jobs()[1].Body))

	// Output:
	// 503 Service Unavailable
	// not now
	// 200 OK
	// {"id":"3","title":"T-shirt “Triangle” Blue","color":"Blue","stock":"34","availability":"in stock","price":"15.00"}
	// {"id":"4","title":"T-shirt “Triangle” Red","color":"Red","stock":"0","availability":"out of stock","price":"15.00"}
	// {"id":"5","title":"T-shirt “Hexagon”","color":"","stock":"78","availability":"in stock","price":"18.00"}
	// 2 jobs, the same body: true
}
