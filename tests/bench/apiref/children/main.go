// children creates the objects of a file with client-go, one after the other as a controller's loop does, and prints how long that took as JSON.
//
//	children -server https://10.128.0.2:6443 -ca ca.crt -token T FILE
//
// A line of the file is {"path": the collection, "body": the object}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var (
	server = flag.String("server", "", "address of the API server")
	ca     = flag.String("ca", "", "file of its CA")
	token  = flag.String("token", "", "bearer token")
)

type child struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

func read(name string) []child {
	file, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	var children []child
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one child
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			log.Fatal(err)
		}
		children = append(children, one)
	}
	return children
}

func main() {
	flag.Parse()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: *server, TLSClientConfig: rest.TLSClientConfig{CAFile: *ca}, BearerToken: *token, QPS: -1})
	if err != nil {
		log.Fatal(err)
	}
	children := read(flag.Arg(0))
	begun := time.Now()
	for _, one := range children {
		post := client.CoreV1().RESTClient().Post().AbsPath(one.Path).SetHeader("Content-Type", "application/json").Body([]byte(one.Body))
		if err := post.Do(context.Background()).Error(); err != nil {
			log.Fatal(err)
		}
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"seconds": time.Since(begun).Seconds(), "objects": len(children)})
}
