// A CSI proxy by which csi-sanity, whose cases begin with CreateVolume, is run on volumes that no driver makes: devices
// that an administrator has listed. Each call goes to the driver as it is, and so does its answer, but for three:
// CreateVolume without a source gives a name to one of the devices, DeleteVolume takes the name away again, and
// ListVolumes leaves out the devices that have none. What is asked of a volume besides its size is asked of the driver
// there, too, and what the driver refuses is refused.
//
//	csi-static --driver SOCKET --listen SOCKET --devices COUNT
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// message is one that is passed on, as its bytes.
type message []byte

type asBytes struct{}

func (asBytes) Name() string { return "proto" }

func (asBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*message))}, nil
}

func (asBytes) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*message) = data.Materialize()
	return nil
}

type proxy struct {
	driver  *grpc.ClientConn
	devices *devices
}

// handle is for every method of every service: each takes one request.
func (p *proxy) handle(_ any, caller grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(caller)
	var request message
	if err := caller.RecvMsg(&request); err != nil {
		return err
	}
	switch method {
	case csi.Controller_CreateVolume_FullMethodName:
		return answer(caller, request, &csi.CreateVolumeRequest{}, p.devices.create)
	case csi.Controller_DeleteVolume_FullMethodName:
		return answer(caller, request, &csi.DeleteVolumeRequest{}, p.devices.delete)
	case csi.Controller_ListVolumes_FullMethodName:
		return answer(caller, request, &csi.ListVolumesRequest{}, p.devices.list)
	}
	return p.pass(method, request, caller)
}

func answer[Request, Response proto.Message](caller grpc.ServerStream, bytes message, request Request,
	call func(context.Context, Request) (Response, error)) error {
	if err := proto.Unmarshal(bytes, request); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	response, err := call(caller.Context(), request)
	if err != nil {
		return err
	}
	encoded, err := proto.Marshal(response)
	if err != nil {
		return err
	}
	return caller.SendMsg((*message)(&encoded))
}

// pass gives the driver the call, and the caller each answer, of a stream too, and the status.
func (p *proxy) pass(method string, request message, caller grpc.ServerStream) error {
	ctx := caller.Context()
	if told, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, told.Copy())
	}
	stream, err := p.driver.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, grpc.ForceCodecV2(asBytes{}))
	if err != nil {
		return err
	}
	// Of one that is refused before it was read the reason is told by RecvMsg.
	if err := stream.SendMsg(&request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var response message
		if err := stream.RecvMsg(&response); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := caller.SendMsg(&response); err != nil {
			return err
		}
	}
}

func run(driver, listen string, count int) error {
	connection, err := grpc.NewClient("unix://"+driver, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	listed, err := listDevices(context.Background(), csi.NewControllerClient(connection), count)
	if err != nil {
		return err
	}
	socket, err := net.Listen("unix", listen)
	if err != nil {
		return err
	}
	p := &proxy{driver: connection, devices: listed}
	return grpc.NewServer(grpc.ForceServerCodecV2(asBytes{}), grpc.UnknownServiceHandler(p.handle)).Serve(socket)
}

func main() {
	driver := flag.String("driver", "", "socket of the driver")
	listen := flag.String("listen", "", "socket to listen on")
	count := flag.Int("devices", 0, "how many devices are listed, and nothing besides")
	flag.Parse()
	if err := run(*driver, *listen, *count); err != nil {
		fmt.Fprintln(os.Stderr, "csi-static:", err)
		os.Exit(1)
	}
}
