package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// csiRegistrar lets a CSI driver listen below the root of a kubelet, or of volumed, and registers it there as
// node-driver-registrar does.
type csiRegistrar struct {
	registration.UnimplementedRegistrationServer
	endpoint string
	told     chan *registration.RegistrationStatus
	servers  []*grpc.Server
}

// registerCSIDriver returns once the program has said that the driver is registered.
func registerCSIDriver(root string, driver *csiDriver) (*csiRegistrar, error) {
	r := &csiRegistrar{endpoint: filepath.Join(root, "plugins", csiDriverName, "csi.sock"),
		told: make(chan *registration.RegistrationStatus, 16)}
	if err := r.listen(r.endpoint, driver.newServer()); err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, r)
	err := r.listen(filepath.Join(root, "plugins_registry", csiDriverName+"-reg.sock"), server)
	if err == nil {
		err = r.wait()
	}
	if err != nil {
		r.stop()
	}
	return r, err
}

func (r *csiRegistrar) listen(socket string, server *grpc.Server) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	r.servers = append(r.servers, server)
	go server.Serve(listener)
	return nil
}

// A refusal may be of the moment: it is asked again then.
func (r *csiRegistrar) wait() error {
	last := "nobody asked for it"
	for deadline := time.After(time.Minute); ; {
		select {
		case status := <-r.told:
			if status.PluginRegistered {
				return nil
			}
			last = status.Error
		case <-deadline:
			return fmt.Errorf("the CSI driver is not registered after a minute: %w", errors.New(last))
		}
	}
}

// stop takes the sockets away, and the connections.
func (r *csiRegistrar) stop() {
	for _, server := range r.servers {
		server.Stop()
	}
}

func (r *csiRegistrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: csiDriverName, Endpoint: r.endpoint,
		SupportedVersions: []string{"1.0.0"}}, nil
}

func (r *csiRegistrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	select {
	case r.told <- status:
	default: // nobody waits any more
	}
	return &registration.RegistrationStatusResponse{}, nil
}
