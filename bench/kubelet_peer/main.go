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

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	"k8s.io/kubernetes/pkg/volume/util/volumepathhandler"
)

// Kubelet's own defaults are in the flags' help texts, with the names that they have in its
// configuration.
type options struct {
	root, socket, objects, nodeName string
	syncFrequency, statsPeriod      time.Duration
}

func parseOptions() (options, error) {
	var o options
	flag.StringVar(&o.root, "root", "", "kubelet's root directory")
	flag.StringVar(&o.socket, "socket", "", "unix socket of the control API")
	flag.StringVar(&o.objects, "objects", "", "objects that are known before the volume manager starts, as after a restart; JSON")
	flag.StringVar(&o.nodeName, "node-name", "peer", "name of the node")
	flag.DurationVar(&o.syncFrequency, "sync-frequency", time.Minute, "syncFrequency: how often each pod is synced again")
	flag.DurationVar(&o.statsPeriod, "stats-period", time.Minute, "volumeStatsAggPeriod; 0: volumes are not measured")
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

func main() {
	o, err := parseOptions()
	if err == nil {
		err = run(o)
	}
	fmt.Fprintln(os.Stderr, "kubelet_peer:", err)
	os.Exit(1)
}
