// A client of the CSI driver by one generation of grpc-go, which is that of the folder that it is built in: what
// a CO, a sidecar or a kubelet may ask, and what happens to calls that do not end well.
//
//	grpc-go --socket PATH --way unix|dialer|authority --pid PID --staging DIR --target PATH life|restart|keepalive
//
// Each check that has passed is a line of its name; the first one that fails is the last line, and status 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// How long anything may take that is not itself measured.
const patience = 30 * time.Second

type client struct {
	identity    csi.IdentityClient
	controller  csi.ControllerClient
	node        csi.NodeClient
	metadata    csi.SnapshotMetadataClient
	connections atomic.Int32 // that were made
}

// TagRPC and the others make the client a stats.Handler, which counts connections.
func (c *client) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (c *client) HandleRPC(context.Context, stats.RPCStats)                         {}
func (c *client) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (c *client) HandleConn(_ context.Context, event stats.ConnStats) {
	if _, begins := event.(*stats.ConnBegin); begins {
		c.connections.Add(1)
	}
}

type places struct {
	socket, way, staging, target string
	pid                          int // of the daemon
}

// newClient dials as one kind of client does, which decides what the driver gets as the authority: "localhost" for a
// target of the scheme unix, the path of the socket for whoever has a dialer of its own.
func newClient(at places, more ...grpc.DialOption) (*client, error) {
	c := &client{}
	target := "unix://" + at.socket
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(c)},
		more...)
	switch at.way {
	case "unix":
	case "authority":
		options = append(options, grpc.WithAuthority("localhost"))
	case "dialer":
		target = bareTarget + at.socket
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", at.socket)
		}))
	default:
		return nil, fmt.Errorf("no way %q", at.way)
	}
	connection, err := dial(target, options...)
	if err != nil {
		return nil, err
	}
	c.identity = csi.NewIdentityClient(connection)
	c.controller = csi.NewControllerClient(connection)
	c.node = csi.NewNodeClient(connection)
	c.metadata = csi.NewSnapshotMetadataClient(connection)
	return c, nil
}

// again makes a call as a CO does: it is repeated while the driver is not there, or at the same thing already.
func again(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := call(ctx)
		if code := status.Code(err); (code != codes.Unavailable && code != codes.Aborted) || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wants is an error unless err has the code.
func wants(code codes.Code, err error) error {
	if status.Code(err) != code {
		return fmt.Errorf("wanted %v, got: %v", code, err)
	}
	return nil
}

type check struct {
	name string
	pass func() error
}

func run(checks []check) {
	for _, one := range checks {
		if err := one.pass(); err != nil {
			fmt.Printf("failed: %s: %v\n", one.name, err)
			os.Exit(1)
		}
		fmt.Println(one.name)
	}
}

func main() {
	var at places
	flag.StringVar(&at.socket, "socket", "", "the driver's")
	flag.StringVar(&at.way, "way", "unix", "of dialing: unix, dialer, authority")
	flag.StringVar(&at.staging, "staging", "", "a directory in which a volume may be staged")
	flag.StringVar(&at.target, "target", "", "where a volume may be published")
	flag.IntVar(&at.pid, "pid", 0, "of the daemon, which is stopped, gone on with, and in restart killed")
	flag.Parse()
	checks := map[string]func(places) ([]check, error){"life": life, "restart": restart, "keepalive": keepAlive}[flag.Arg(0)]
	if checks == nil {
		flag.Usage()
		os.Exit(2)
	}
	all, err := checks(at)
	if err != nil {
		fmt.Printf("failed: dial: %v\n", err)
		os.Exit(1)
	}
	run(all)
}
