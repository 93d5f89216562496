// pd is the CSI driver of Google's persistent disks over sparse files and loop devices, in two processes as in the
// field, so that each can be killed alone:
//
//	pd --role cloud --dir DIR --socket FILE [--node NAME,...]   identity and controller service, and the cloud
//	pd --role node --dir DIR --socket FILE --node NAME          identity and node service
//	pd --role registrar --socket FILE --registry DIR            what a node-driver-registrar does
//
// Real are the driver's own controller and node server: all checks and errors, the locks of volumes, blkid, mkfs,
// fsck, mount, growth, statistics. Only the compute API is ours. The cloud keeps what it knows in DIR/state.json; the
// node server sees no more of it than the links below DIR/nodes/NAME, which stand for /dev/disk/by-id.
//
// Each call that a server has answered is one line of its standard output: METHOD CODE VOLUME, and with --requests a
// tabulator, when it came and when it was answered (nanoseconds), and the request as JSON. With --die-before N or
// --die-after N it kills itself when the Nth call comes that changes something: before it is carried out, or when it is
// done and not yet answered.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/klog/v2"

	driver "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-pd-csi-driver"
)

const version = "v1.28.1"

type settings struct {
	dir, socket, zone, machineType, driverName string
	nodes                                      []string
	registry, endpoint                         string
	dieBefore, dieAfter                        int64
	requests                                   bool
}

// changing counts the calls that change something: neither what is asked at the registration nor a look.
type changing struct {
	settings
	calls atomic.Int64
}

func (c *changing) count(method string) int64 {
	for _, word := range []string{"Probe", "Get", "List", "Validate"} {
		if strings.Contains(method, word) {
			return -1
		}
	}
	return c.calls.Add(1)
}

// dieIf is a kill -9 at this very place.
func dieIf(now bool) {
	if now {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// handle says what was answered, after it was written down and before the caller gets it.
func (c *changing) handle(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	number := c.count(method)
	dieIf(number == c.dieBefore)
	came := time.Now().UnixNano()
	answer, err := next(ctx, request)
	volume := ""
	if named, ok := request.(interface{ GetVolumeId() string }); ok {
		volume = named.GetVolumeId()
	} else if named, ok := request.(interface{ GetName() string }); ok {
		volume = named.GetName()
	}
	line := fmt.Sprintf("%s %s %s", method, status.Code(err), volume)
	if message, ok := request.(proto.Message); ok && c.requests {
		line += fmt.Sprintf("\t%d %d %s", came, time.Now().UnixNano(), protojson.MarshalOptions{}.Format(message))
	}
	fmt.Println(line)
	dieIf(number == c.dieAfter)
	return answer, err
}

// listen takes the place of a socket that a killed process has left.
func listen(socket string) net.Listener {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		klog.Exit(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		klog.Exit(err)
	}
	return listener
}

// serve never returns. A role without a service of the driver gives nil for it.
func serve(set settings, controller *driver.GCEControllerServer, node *driver.GCENodeServer, d *driver.GCEDriver) {
	identity := driver.NewIdentityServer(d)
	if err := d.SetupGCEDriver(set.driverName, version, nil, nil, identity, controller, node); err != nil {
		klog.Exit(err)
	}
	counted := &changing{settings: set}
	server := grpc.NewServer(grpc.UnaryInterceptor(counted.handle))
	csi.RegisterIdentityServer(server, identity)
	if controller != nil {
		csi.RegisterControllerServer(server, controller)
	}
	if node != nil {
		csi.RegisterNodeServer(server, node)
	}
	klog.Exit(server.Serve(listen(set.socket)))
}

func serveCloud(set settings) {
	c, err := openCloud(set.dir, set.zone, set.nodes)
	if err != nil {
		klog.Exit(err)
	}
	d := driver.GetGCEDriver()
	serve(set, driver.NewControllerServer(d, c, 200*time.Millisecond, 5*time.Second, nil, false, false,
		driver.MultiZoneVolumeHandleConfig{}, driver.ListVolumesConfig{}, driver.ProvisionableDisksConfig{}, false,
		&driver.GCEControllerServerArgs{EnableDiskSizeValidation: true}), nil, d)
}

func main() {
	var set settings
	var nodes string
	klog.InitFlags(nil)
	role := flag.String("role", "", "cloud, node or registrar")
	flag.StringVar(&set.dir, "dir", "", "folder of the cloud")
	flag.StringVar(&set.socket, "socket", "", "where to serve; for the registrar: the driver's socket")
	flag.StringVar(&set.zone, "zone", "country-region-zone", "of the instances")
	flag.StringVar(&set.machineType, "machine-type", "n1-standard-1", "it decides how many disks the node takes")
	flag.StringVar(&set.driverName, "driver-name", "pd.csi.storage.gke.io", "")
	flag.StringVar(&nodes, "node", "n1", "instances of the cloud; of the node role the one it runs on")
	flag.StringVar(&set.registry, "registry", "", "registrar: the plugins_registry")
	flag.StringVar(&set.endpoint, "endpoint", "", "registrar: the socket as the agent sees it (default: --socket)")
	flag.Int64Var(&set.dieBefore, "die-before", 0, "which call that changes something is never carried out")
	flag.Int64Var(&set.dieAfter, "die-after", 0, "which one is carried out and never answered")
	flag.BoolVar(&set.requests, "requests", false, "say what was asked; secrets too, which are a test's")
	flag.Parse()
	set.nodes = strings.Split(nodes, ",")
	if set.socket == "" || (set.dir == "" && *role != "registrar") {
		klog.Exit("--socket and --dir are needed")
	}
	switch *role {
	case "cloud":
		serveCloud(set)
	case "node":
		serveNode(set)
	case "registrar":
		register(set)
	default:
		klog.Exit("--role is cloud, node or registrar")
	}
}
