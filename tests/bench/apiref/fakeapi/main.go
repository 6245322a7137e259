// fakeapi serves pods as a Kubernetes API server would, from memory: list (paged), watch at a given rate, patch.
//
//	fakeapi -dir DIR -pods 10000 -rate 5000 -events 50000
//
// It writes DIR/ca.crt, and DIR/addr when it listens. A watch sends its events once, ending with a change of pod "last".
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var (
	dir    = flag.String("dir", ".", "where to write the CA and the address")
	count  = flag.Int("pods", 10000, "pods served")
	rate   = flag.Int("rate", 5000, "watch events per second")
	events = flag.Int("events", 50000, "events per watch")
)

var patches atomic.Int64

// A pod as a cluster has them: about 5.8 kB, with what admission, the kubelet and field managers add.
func pod(index int, version int64) []byte {
	name := fmt.Sprintf("train-%d-worker-%d", index/8, index%8)
	if index == *count-1 {
		name = "last"
	}
	mounts, env := []any{}, []any{}
	for i := range 4 {
		mounts = append(mounts, map[string]any{"name": fmt.Sprintf("volume-%d", i), "mountPath": fmt.Sprintf("/mnt/data/%d", i), "readOnly": i%2 == 0})
	}
	for i := range 8 {
		env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d", i), "value": fmt.Sprintf("a value of some length for setting %d", i)})
	}
	volumes := []any{}
	for i := range 4 {
		volumes = append(volumes, map[string]any{"name": fmt.Sprintf("volume-%d", i), "configMap": map[string]any{"name": fmt.Sprintf("config-%d", i), "defaultMode": 420}})
	}
	conditions := []any{}
	for _, kind := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "lastProbeTime": nil, "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
	}
	managed := map[string]any{}
	for i := range 24 {
		managed[fmt.Sprintf("f:field-%d", i)] = map[string]any{"f:value": map[string]any{}, "f:type": map[string]any{}}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": name, "namespace": fmt.Sprintf("team-%d", index%20), "uid": fmt.Sprintf("11111111-2222-3333-4444-%012d", index),
			"resourceVersion": strconv.FormatInt(version, 10), "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
			"labels":      map[string]any{"app": "train", "job-name": fmt.Sprintf("train-%d", index/8), "batch.kubernetes.io/job-completion-index": strconv.Itoa(index % 8), "pod-template-hash": "7c9d5f6b4"},
			"annotations": map[string]any{"slurmjob.slinky.slurm.net/partition": "gpu", "slurmjob.slinky.slurm.net/account": "physics", "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"},
			"ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": fmt.Sprintf("train-%d", index/8),
				"uid": fmt.Sprintf("99999999-2222-3333-4444-%012d", index/8), "controller": true, "blockOwnerDeletion": true}},
			"finalizers":    []any{"slinky.slurm.net/finalizer"},
			"managedFields": []any{map[string]any{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": managed}},
		},
		"spec": map[string]any{
			"schedulerName": "slurm-bridge-scheduler", "nodeName": fmt.Sprintf("node-%d", index%5000), "restartPolicy": "Never", "priority": 0,
			"serviceAccountName": "default", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "enableServiceLinks": true,
			"tolerations": []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
				map[string]any{"key": "slinky.slurm.net/managed-node", "operator": "Equal", "value": "slurm-bridge-scheduler", "effect": "NoExecute"}},
			"containers": []any{map[string]any{"name": "main", "image": "registry.example/team/train:2026.1", "imagePullPolicy": "IfNotPresent",
				"command": []any{"/usr/bin/python3", "-m", "train", "--config", "/mnt/data/0/config.yaml"}, "env": env, "volumeMounts": mounts,
				"resources":              map[string]any{"requests": map[string]any{"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}, "limits": map[string]any{"nvidia.com/gpu": "1", "memory": "16Gi"}},
				"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}},
			"volumes": volumes,
		},
		"status": map[string]any{"phase": "Running", "conditions": conditions, "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "startTime": "2026-01-01T00:00:00Z", "qosClass": "Burstable",
			"containerStatuses": []any{map[string]any{"name": "main", "ready": true, "started": true, "restartCount": 0, "image": "registry.example/team/train:2026.1",
				"imageID": "registry.example/team/train@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
				"state":   map[string]any{"running": map[string]any{"startedAt": "2026-01-01T00:00:00Z"}}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// A node as a kubelet keeps it: conditions, images, features.
func node(index int) []byte {
	images, conditions := []any{}, []any{}
	for i := range 30 {
		images = append(images, map[string]any{"names": []any{fmt.Sprintf("registry.example/team/image-%d:1", i)}, "sizeBytes": 1000000 + i})
	}
	for _, kind := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		status := "False"
		if kind == "Ready" {
			status = "True"
		}
		conditions = append(conditions, map[string]any{"type": kind, "status": status, "reason": "KubeletHas", "message": "kubelet has what it needs",
			"lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
	}
	amounts := map[string]any{"cpu": "128", "memory": "1056661476Ki", "pods": "250", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8"}
	name := fmt.Sprintf("node-%d", index)
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "uid": fmt.Sprintf("33333333-2222-3333-4444-%012d", index), "resourceVersion": strconv.Itoa(index + 1),
			"creationTimestamp": "2026-01-01T00:00:00Z",
			"labels": map[string]any{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
				"topology.kubernetes.io/zone": fmt.Sprintf("rack-%d", index/32), "node.kubernetes.io/instance-type": "gpu-8"},
			"annotations": map[string]any{"node.alpha.kubernetes.io/ttl": "0", "slinky.slurm.net/slurm-node": name}},
		"spec": map[string]any{"podCIDR": "10.0.0.0/24", "taints": []any{map[string]any{"key": "slinky.slurm.net/managed-node", "value": "slurm-bridge-scheduler", "effect": "NoExecute"}}},
		"status": map[string]any{"capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images,
			"addresses": []any{map[string]any{"type": "InternalIP", "address": fmt.Sprintf("10.%d.%d.1", index/250, index%250)}, map[string]any{"type": "Hostname", "address": name}},
			"nodeInfo":  map[string]any{"kubeletVersion": "v1.36.3", "osImage": "Debian", "kernelVersion": "6.12", "containerRuntimeVersion": "containerd://2.1.9"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	return text
}

func list(w http.ResponseWriter, r *http.Request, kind string, pods [][]byte) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to, next := len(pods), ""
	if limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"1000000","continue":%q},"items":[`, kind, next)
	for i := from; i < to; i++ {
		if i > from {
			io.WriteString(w, ",")
		}
		w.Write(pods[i])
	}
	io.WriteString(w, "]}\n")
}

// The events are made before the watch begins, so that the server costs little while clients are measured.
func watch(w http.ResponseWriter, r *http.Request, lines [][]byte) {
	flush := w.(http.Flusher)
	flush.Flush()
	begun, sent := time.Now(), 0
	for sent < len(lines) {
		due := min(len(lines), int(time.Since(begun).Seconds()*float64(*rate)))
		for ; sent < due; sent++ {
			if _, err := w.Write(lines[sent]); err != nil {
				return
			}
		}
		flush.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	<-r.Context().Done()
}

func patch(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	version := 2000000 + patches.Add(1)
	parts := strings.Split(r.URL.Path, "/")
	fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"1","resourceVersion":"%d"},"spec":{},"status":{}}`, parts[len(parts)-1], parts[4], version)
}

func certificate() tls.Certificate {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fakeapi"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	if err := os.WriteFile(filepath.Join(*dir, "ca.crt"), text, 0o644); err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}

func main() {
	flag.Parse()
	pods, lines := make([][]byte, *count), make([][]byte, *events)
	for i := range pods {
		pods[i] = pod(i, int64(i+1))
	}
	for i := range lines {
		index := i % (*count - 1)
		if i == len(lines)-1 {
			index = *count - 1
		}
		body := bytes.Replace(pods[index], fmt.Appendf(nil, `"resourceVersion":"%d"`, index+1), fmt.Appendf(nil, `"resourceVersion":"%d"`, 1000001+i), 1)
		lines[i] = append(append([]byte(`{"type":"MODIFIED","object":`), body...), "}\n"...)
	}
	nodes := make([][]byte, *count/2)
	for i := range nodes {
		nodes[i] = node(i)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case r.Method == http.MethodPatch:
			patch(w, r)
		case query.Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/pods"):
			watch(w, r, lines)
		case query.Get("watch") != "":
			watch(w, r, nil)
		case strings.HasSuffix(r.URL.Path, "/nodes"):
			list(w, r, "NodeList", nodes)
		default:
			list(w, r, "PodList", pods)
		}
	})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*dir, "addr.part"), []byte(listener.Addr().String()), 0o644); err != nil {
		log.Fatal(err)
	}
	os.Rename(filepath.Join(*dir, "addr.part"), filepath.Join(*dir, "addr"))
	server := &http.Server{Handler: handler}
	log.Fatal(server.Serve(listener))
}
