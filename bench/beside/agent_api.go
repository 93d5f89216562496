package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// agentAPI calls volumed's control API by the description that protoc makes of proto/agent.proto, so
// that no generated code has to be kept in step with it.
type agentAPI struct {
	service protoreflect.ServiceDescriptor
	conn    *grpc.ClientConn
}

func newAgentAPI(descriptorSet, socket string) (*agentAPI, error) {
	bytes, err := os.ReadFile(descriptorSet)
	if err != nil {
		return nil, err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(bytes, &set); err != nil {
		return nil, fmt.Errorf("%s: %w", descriptorSet, err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", descriptorSet, err)
	}
	service, err := findService(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", descriptorSet, err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20), grpc.MaxCallSendMsgSize(256<<20)))
	return &agentAPI{service, conn}, err
}

func findService(files *protoregistry.Files) (protoreflect.ServiceDescriptor, error) {
	found, err := files.FindDescriptorByName("volumed.v1.VolumeAgent")
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.ServiceDescriptor), nil
}

// call takes the request's fields as JSON.
func (a *agentAPI) call(ctx context.Context, method, request string) (*dynamicpb.Message, error) {
	in := dynamicpb.NewMessage(a.method(method).Input())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		return nil, err
	}
	return a.send(ctx, method, in)
}

func (a *agentAPI) send(ctx context.Context, method string, in *dynamicpb.Message) (*dynamicpb.Message, error) {
	out := dynamicpb.NewMessage(a.method(method).Output())
	err := a.conn.Invoke(ctx, fmt.Sprintf("/%s/%s", a.service.FullName(), method), in, out)
	return out, err
}

// waitReady follows Wait's stream to its end, which comes when the pod is ready.
func (a *agentAPI) waitReady(ctx context.Context, uid string) error {
	request := dynamicpb.NewMessage(a.method("Wait").Input())
	text := fmt.Sprintf(`{"pod": {"kind": "Pod", "uid": %q}, "for": "ready"}`, uid)
	if err := protojson.Unmarshal([]byte(text), request); err != nil {
		return err
	}
	stream, err := a.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, fmt.Sprintf("/%s/Wait", a.service.FullName()))
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	met := false
	for {
		view := dynamicpb.NewMessage(a.method("Wait").Output())
		err := stream.RecvMsg(view)
		if errors.Is(err, io.EOF) && met {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for pod %s: %w", uid, err)
		}
		met = field(view, "met").Bool()
	}
}

func (a *agentAPI) method(name string) protoreflect.MethodDescriptor {
	return a.service.Methods().ByName(protoreflect.Name(name))
}

// field is the value of a field that the description has.
func field(message protoreflect.Message, name string) protoreflect.Value {
	return message.Get(message.Descriptor().Fields().ByName(protoreflect.Name(name)))
}
