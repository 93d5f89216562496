// Kubernetes' own suite for the storage drivers of others, as a program. Which driver, -storage.testdriver says.
package main

import (
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/storage/external"
)

// What ginkgo wants of Go's testing.
type run struct{ failed bool }

func (r *run) Fail() { r.failed = true }

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	result := &run{}
	ginkgo.RunSpecs(result, "external storage")
	if result.failed {
		os.Exit(1)
	}
}
