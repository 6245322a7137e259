// yamlref - what sigs.k8s.io/yaml makes of documents, as the reference for src/codec/yaml.c.
//
// Reads one JSON string per line, each a YAML text; answers one line per text: the JSON of its
// first document, or "error: " and the reason. With -strict duplicate keys are errors.
//
// sigs.k8s.io/yaml stops behind the first document; here the rest must be YAML as well.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// The first error of any document in the text.
func readAll(text string) error {
	decoder := goyaml.NewDecoder(strings.NewReader(text))
	for {
		var value interface{}
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func main() {
	strict := flag.Bool("strict", false, "refuse duplicate keys")
	flag.Parse()
	convert := yaml.YAMLToJSON
	if *strict {
		convert = yaml.YAMLToJSONStrict
	}

	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			fmt.Fprintln(os.Stderr, "yamlref:", err)
			os.Exit(2)
		}
		answer, err := convert([]byte(text))
		if err == nil {
			err = readAll(text)
		}
		if err != nil {
			answer = []byte("error: " + strings.ReplaceAll(err.Error(), "\n", " "))
		}
		fmt.Fprintf(out, "%s\n", answer)
	}
}
