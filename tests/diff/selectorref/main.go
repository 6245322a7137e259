// selectorref answers, line by line, what the Go libraries of Kubernetes make of a selector: the
// reference that selector.c and nodeselector.c are compared with. It is a test tool and not part of
// the product. Questions and answers are those of drive_selector.c.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

type question struct {
	Kind     string
	Selector json.RawMessage
	Subjects []map[string]string // labels
	Nodes    []node              // of kinds nodes and pod
}

type node struct {
	Name   string
	Labels map[string]string
}

type answer struct {
	Ok      bool   `json:"ok"`
	Text    string `json:"text"`
	Matches []bool `json:"matches"`
}

func (n node) object() *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
}

func ofLabels(selector labels.Selector, q question) (a answer) {
	a.Ok = true
	a.Text = selector.String()
	for _, subject := range q.Subjects {
		a.Matches = append(a.Matches, selector.Matches(labels.Set(subject)))
	}
	return a
}

func text(q question) (answer, error) {
	var selector string
	if err := json.Unmarshal(q.Selector, &selector); err != nil {
		return answer{}, err
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return answer{}, err
	}
	return ofLabels(parsed, q), nil
}

func object(q question) (answer, error) {
	var selector *metav1.LabelSelector
	if err := json.Unmarshal(q.Selector, &selector); err != nil {
		return answer{}, err
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return answer{}, err
	}
	return ofLabels(parsed, q), nil
}

func nodes(q question) (a answer, err error) {
	var selector *v1.NodeSelector
	if err := json.Unmarshal(q.Selector, &selector); err != nil || selector == nil {
		return a, err
	}
	lazy := nodeaffinity.NewLazyErrorNodeSelector(selector)
	a.Ok = true
	for _, n := range q.Nodes {
		matches, _ := lazy.Match(n.object())
		a.Matches = append(a.Matches, matches)
	}
	return a, nil
}

func pod(q question) (a answer, err error) {
	var spec v1.PodSpec
	if err := json.Unmarshal(q.Selector, &spec); err != nil {
		return a, err
	}
	required := nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: spec})
	a.Ok = true
	for _, n := range q.Nodes {
		matches, _ := required.Match(n.object())
		a.Matches = append(a.Matches, matches)
	}
	return a, nil
}

func main() {
	kinds := map[string]func(question) (answer, error){
		"text": text, "object": object, "nodes": nodes, "pod": pod,
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			panic(err)
		}
		a, err := kinds[q.Kind](q)
		if err != nil {
			a = answer{}
		}
		line, _ := json.Marshal(a)
		fmt.Fprintln(out, string(line))
	}
}
