// clientgo does with client-go what tests/bench/bench_kube.c does with our client, and prints what it cost as JSON.
//
//	clientgo -server https://127.0.0.1:1234 -ca ca.crt list|watch|patch
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	server  = flag.String("server", "", "address of the API server")
	ca      = flag.String("ca", "", "file of its CA")
	count   = flag.Int("count", 2000, "patches to send")
	workers = flag.Int("workers", 64, "patches in flight")
)

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func memoryMiB(field string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			var kib float64
			fmt.Sscan(rest, &kib)
			return kib / 1024
		}
	}
	return 0
}

func report(begun time.Time, cpu float64, objects int) {
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"seconds": time.Since(begun).Seconds(), "cpu": cpuSeconds() - cpu, "rss": memoryMiB("VmRSS"), "peak": memoryMiB("VmHWM"), "objects": objects})
}

func observe(client kubernetes.Interface, follow bool) {
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	seen := make(chan struct{})
	var changes atomic.Int64
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, next any) {
		changes.Add(1)
		if next.(*corev1.Pod).Name == "last" {
			close(seen)
		}
	}})
	begun, cpu := time.Now(), cpuSeconds()
	factory.Start(context.Background().Done())
	if !cache.WaitForCacheSync(context.Background().Done(), informer.HasSynced) {
		log.Fatal("not synced")
	}
	if !follow {
		report(begun, cpu, len(informer.GetStore().ListKeys()))
		return
	}
	begun, cpu = time.Now(), cpuSeconds()
	<-seen
	report(begun, cpu, int(changes.Load()))
}

func patch(client kubernetes.Interface) {
	begun, cpu := time.Now(), cpuSeconds()
	body := []byte(`{"metadata":{"labels":{"slurmjob.slinky.slurm.net/jobid":"12345"}}}`)
	var next atomic.Int64
	var group sync.WaitGroup
	for range *workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				number := int(next.Add(1))
				if number > *count {
					return
				}
				_, err := client.CoreV1().Pods("team-1").Patch(context.Background(), fmt.Sprintf("p%d", number), types.MergePatchType, body, metav1.PatchOptions{})
				if err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	group.Wait()
	report(begun, cpu, *count)
}

func main() {
	flag.Parse()
	config := &rest.Config{Host: *server, TLSClientConfig: rest.TLSClientConfig{CAFile: *ca}, BearerToken: "token", QPS: -1}
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	switch flag.Arg(0) {
	case "list":
		observe(client, false)
	case "watch":
		observe(client, true)
	case "patch":
		patch(client)
	default:
		log.Fatalf("unknown mode %q", flag.Arg(0))
	}
}
