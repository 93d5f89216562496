package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type registrar struct {
	registration.UnimplementedRegistrationServer
	info    *registration.PluginInfo
	refused chan string
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	fmt.Println("GetInfo")
	return r.info, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("NotifyRegistrationStatus", status.PluginRegistered, status.Error)
	if !status.PluginRegistered {
		r.refused <- status.Error
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// driverName waits for the driver, which starts at the same time.
func driverName(socket string) (string, error) {
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return info.GetName(), err
}

// register announces the driver in the registry until it is ended, and ends by itself, with an error, if it is
// refused: whoever runs it starts it again. A killed one leaves its socket, an ended one does not.
func register(set settings) {
	name, err := driverName(set.socket)
	if err != nil {
		klog.Exit("the driver does not answer: ", err)
	}
	endpoint := set.endpoint
	if endpoint == "" {
		endpoint = set.socket
	}
	r := &registrar{refused: make(chan string, 1), info: &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: name, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"}}}
	socket := filepath.Join(set.registry, name+"-reg.sock")
	syscall.Umask(0o077)
	listener := listen(socket)
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() { klog.Error(server.Serve(listener)) }()
	select {
	case <-ended:
		_ = os.Remove(socket)
	case reason := <-r.refused:
		klog.Exit("registration was refused: ", reason)
	}
}
