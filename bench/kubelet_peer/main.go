// kubelet_peer runs kubelet's own volume manager as a program, so that volumed can be measured beside
// it. README.md says which parts of a kubelet are real here and which are not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	"k8s.io/kubernetes/pkg/volume/csi"
	"k8s.io/kubernetes/pkg/volume/util/volumepathhandler"
)

// Kubelet's own defaults are in the flags' help texts, with the names that they have in its
// configuration.
type options struct {
	root, socket, objects, nodeName string
	syncFrequency, statsPeriod      time.Duration
	apiQPS                          int
}

func parseOptions() (options, error) {
	var o options
	flag.StringVar(&o.root, "root", "", "kubelet's root directory")
	flag.StringVar(&o.socket, "socket", "", "unix socket of the control API")
	flag.StringVar(&o.objects, "objects", "", "objects that are known before the volume manager starts, as after a restart; JSON")
	flag.StringVar(&o.nodeName, "node-name", "peer", "name of the node")
	flag.DurationVar(&o.syncFrequency, "sync-frequency", time.Minute, "syncFrequency: how often each pod is synced again")
	flag.DurationVar(&o.statsPeriod, "stats-period", time.Minute, "volumeStatsAggPeriod; 0: volumes are not measured")
	flag.IntVar(&o.apiQPS, "api-qps", 0, "kubeAPIQPS: how many requests to the API server a second, with twice as many at once, which is 50 in a kubelet; 0: any number")
	verbosity := flag.String("v", "0", "klog's verbosity")
	flag.Parse()
	if o.root == "" || o.socket == "" {
		return o, errors.New("--root and --socket are needed")
	}
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	return o, klogFlags.Set("v", *verbosity)
}

func run(o options) error {
	if err := os.MkdirAll(filepath.Join(o.root, "pods"), 0o750); err != nil {
		return err
	}
	ctx := context.Background()
	client := fake.NewClientset(nodeObject(o.nodeName))
	if o.apiQPS > 0 {
		throttle(client, o.apiQPS)
	}
	host, err := newNode(o.root, o.nodeName, client)
	if err != nil {
		return err
	}
	// The root must be a shared mount before anything is mounted below it, as in setupDataDirs.
	if err := host.GetHostUtil().MakeRShared(o.root); err != nil {
		return fmt.Errorf("make %s a shared mount: %w", o.root, err)
	}
	pods := newPods(ctx, host, o.syncFrequency)
	pods.manager = kubepod.NewBasicPodManager()
	pods.volumes = volumemanager.NewVolumeManager(true, host.GetNodeName(), pods.manager, pods, client,
		&host.plugins, host.GetMounter(), host.GetHostUtil(), host.GetPodsDir(), host.recorder,
		volumepathhandler.NewBlockVolumePathHandler())
	if o.objects != "" {
		manifest, err := os.ReadFile(o.objects)
		if err != nil {
			return err
		}
		if err := apply(host.objects, pods, manifest); err != nil {
			return fmt.Errorf("%s: %w", o.objects, err)
		}
	}
	everySourceIsReady := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	host.informers.Start(ctx.Done())
	go registerDrivers(ctx, host, everySourceIsReady)
	go pods.volumes.Run(ctx, everySourceIsReady)
	go pods.housekeep()
	if o.statsPeriod > 0 {
		measureVolumes(ctx, pods, o.statsPeriod)
	}
	listener, err := net.Listen("unix", o.socket)
	if err != nil {
		return err
	}
	return http.Serve(listener, controlAPI(host.objects, pods))
}

// throttle makes the client as slow as a kubelet's, whose limit is that of client-go.
func throttle(client *fake.Clientset, qps int) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(float32(qps), 2*qps)
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		limiter.Accept()
		return false, nil, nil
	})
}

// registerDrivers is kubelet's own way to a CSI driver: its plugin manager, which looks for sockets in the registry.
func registerDrivers(ctx context.Context, host *node, ready config.SourcesReady) {
	drivers := pluginmanager.NewPluginManager(filepath.Join(host.root, "plugins_registry"), host.recorder)
	drivers.AddHandler(registration.CSIPlugin, csi.PluginHandler)
	drivers.Run(ctx, ready, ctx.Done())
}

func main() {
	o, err := parseOptions()
	if err == nil {
		err = run(o)
	}
	fmt.Fprintln(os.Stderr, "kubelet_peer:", err)
	os.Exit(1)
}
