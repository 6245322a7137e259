// The network policy controller of kube-router and nothing else of it: the stock program links a BGP server, a container runtime's client and a
// cloud's SDK. It runs on the node, in whose network namespace it writes iptables and ipsets.
package main

import (
	"flag"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cloudnativelabs/kube-router/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	config := options.NewKubeRouterConfig()
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.StringVar(&config.HostnameOverride, "node", "", "the name of this node")
	flag.StringVar(&config.ClusterIPCIDR, "service-cidr", config.ClusterIPCIDR, "addresses of Services")
	flag.Parse()
	config.IPTablesSyncPeriod = 5 * time.Second

	rest, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		klog.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, policies, spaces := factory.Core().V1().Pods().Informer(), factory.Networking().V1().NetworkPolicies().Informer(), factory.Core().V1().Namespaces().Informer()
	stop, ended := make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, spaces, &sync.Mutex{})
	if err != nil {
		klog.Fatal(err)
	}
	pods.AddEventHandler(controller.PodEventHandler)
	policies.AddEventHandler(controller.NetworkPolicyEventHandler)
	spaces.AddEventHandler(controller.NamespaceEventHandler)
	health := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range health {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	go controller.Run(health, stop, &running)
	<-ended
	close(stop)
	running.Wait()
	controller.Cleanup()
}
