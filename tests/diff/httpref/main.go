// httpref - what net/http sees of the bytes of a connection, as the reference for src/io/http_reader.c.
//
// Reads one JSON string per line, each the bytes that a client sends (one byte per character); answers one
// line per connection: a JSON list of the requests that reached the handler with their whole body.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

type request struct {
	Method  string              `json:"method"`
	Path    string              `json:"path"`
	Query   string              `json:"query"`
	Host    string              `json:"host"`
	Headers map[string][]string `json:"headers"`
	Body    string              `json:"body"`
}

// JSON knows characters only: one for each byte.
func characters(bytes string) string {
	runes := make([]rune, len(bytes))
	for i := range len(bytes) {
		runes[i] = rune(bytes[i])
	}
	return string(runes)
}

func bytesOf(characters string) []byte {
	var bytes []byte
	for _, r := range characters {
		bytes = append(bytes, byte(r))
	}
	return bytes
}

func seen(r *http.Request, body []byte) request {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	headers := map[string][]string{}
	for name, values := range r.Header {
		for _, value := range values {
			headers[strings.ToLower(name)] = append(headers[strings.ToLower(name)], characters(value))
		}
	}
	return request{r.Method, characters(path), characters(query), characters(r.Host), headers, characters(string(body))}
}

func ask(address string, bytes []byte) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	conn.Write(bytes) // the server may have hung up before the end
	conn.(*net.TCPConn).CloseWrite()
	_, err = io.Copy(io.Discard, conn)
	if err, isTimeout := err.(net.Error); isTimeout && err.Timeout() {
		return err
	}
	return nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	requests := make(chan request, 1000)
	server := http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err == nil {
				requests <- seen(r, body)
			}
		}),
	}
	go server.Serve(listener)

	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			log.Fatal(err)
		}
		if err := ask(listener.Addr().String(), bytesOf(text)); err != nil {
			log.Fatalf("%q: %v", text, err)
		}
		all := []request{}
		for len(requests) > 0 {
			all = append(all, <-requests)
		}
		answer, _ := json.Marshal(all)
		fmt.Fprintf(out, "%s\n", answer)
	}
}
