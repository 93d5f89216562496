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
// tabulator, when it came and when it was answered (nanoseconds), and the request as JSON. --trap FILE is what a test
// sets for one call (trap.go): the server dies at it, or holds it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
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
	trap                                       trap
	requests                                   bool
}

// handle says what was answered, after it was written down and before the caller gets it.
func (set settings) handle(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	set.trap.pass(method, "before")
	came := time.Now().UnixNano()
	answer, err := next(ctx, request)
	volume := ""
	if named, ok := request.(interface{ GetVolumeId() string }); ok {
		volume = named.GetVolumeId()
	} else if named, ok := request.(interface{ GetName() string }); ok {
		volume = named.GetName()
	}
	line := fmt.Sprintf("%s %s %s", method, status.Code(err), volume)
	if message, ok := request.(proto.Message); ok && set.requests {
		line += fmt.Sprintf("\t%d %d %s", came, time.Now().UnixNano(), protojson.MarshalOptions{}.Format(message))
	}
	fmt.Println(line)
	set.trap.pass(method, "after")
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
	server := grpc.NewServer(grpc.UnaryInterceptor(set.handle))
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
	flag.StringVar((*string)(&set.trap), "trap", "", "file of one line: METHOD before|after die|hold")
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
