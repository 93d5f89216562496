// csi-peer is what a kubelet makes of a folder with registration sockets: kubelet's own plugin manager with kubelet's
// own checks of a CSI driver, and nothing else of a kubelet. A test runs it beside volumed on the same folder and
// compares what the two say.
//
//	csi-peer --registry DIR [--for DURATION]
//
// A line of standard output is a decision: VALIDATE name endpoint [versions] error, REGISTER name endpoint [versions],
// or DEREGISTER name endpoint. It ends with --for, or when it is ended.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	"k8s.io/kubernetes/pkg/volume/csi"
)

// verdicts asks kubelet's handler, and then tells what it would do: to do it takes a kubelet's volume host.
type verdicts struct{ kubelet csi.RegistrationHandler }

func (v *verdicts) ValidatePlugin(name, endpoint string, versions []string) error {
	err := v.kubelet.ValidatePlugin(name, endpoint, versions)
	fmt.Println("VALIDATE", name, endpoint, versions, err)
	return err
}

func (v *verdicts) RegisterPlugin(name, endpoint string, versions []string, _ *time.Duration) error {
	fmt.Println("REGISTER", name, endpoint, versions)
	return nil
}

func (v *verdicts) DeRegisterPlugin(name, endpoint string) {
	fmt.Println("DEREGISTER", name, endpoint)
}

// sources stands for a kubelet's sources of pods, for which the plugin manager waits.
type sources struct{}

func (sources) AddSource(string) {}
func (sources) AllReady() bool   { return true }

func main() {
	registry := flag.String("registry", "", "folder with registration sockets")
	limit := flag.Duration("for", 24*time.Hour, "when to end")
	flag.Parse()
	if *registry == "" {
		log.Fatal("--registry is needed")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	recorder := record.NewBroadcaster().NewRecorder(nil, v1.EventSource{})
	manager := pluginmanager.NewPluginManager(*registry, recorder)
	manager.AddHandler(registration.CSIPlugin, &verdicts{})
	manager.Run(ctx, sources{}, ctx.Done())
	<-ctx.Done()
}
