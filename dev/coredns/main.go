// CoreDNS with the plugins a cluster's DNS needs and no others: the stock program links cloud SDKs
// and takes many minutes to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order in which plugins see a query.
	dnsserver.Directives = []string{
		"reload", "errors", "health", "ready", "cache", "loadbalance", "kubernetes", "template", "forward",
	}
	coremain.Run()
}
