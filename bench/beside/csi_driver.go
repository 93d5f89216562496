package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const csiDriverName = "bench.csi.example.com"

// csiDriver is the CSI driver of both programs. It is a part of this process, so that neither program pays for it.
// A volume is a directory; staging and publishing are a bind mount each, than which no effect on the node is
// cheaper. It has no controller and no statistics, and writes nothing down.
type csiDriver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	volumes string // the directory of them

	mu     sync.Mutex
	delay  time.Duration
	places chan struct{} // as many as RPCs are worked on at a time; nil: any number
	calls  []csiCall     // that were answered
	busy   int
	most   int // at a time
}

type csiCall struct {
	method, volume string
	ended          time.Time
	err            error
}

func (d *csiDriver) newServer() *grpc.Server {
	server := grpc.NewServer(grpc.UnaryInterceptor(d.answer))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterNodeServer(server, d)
	return server
}

// behave is how long each RPC takes from now on, and how many are worked on at a time (0: any number). What was
// counted is forgotten.
func (d *csiDriver) behave(delay time.Duration, atOnce int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delay, d.places, d.calls, d.most = delay, nil, nil, d.busy
	if atOnce > 0 {
		d.places = make(chan struct{}, atOnce)
	}
}

// forget begins to count anew.
func (d *csiDriver) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.most = nil, d.busy
}

// answer counts every RPC, and makes it as slow as it is to be.
func (d *csiDriver) answer(ctx context.Context, request any, info *grpc.UnaryServerInfo, work grpc.UnaryHandler) (any, error) {
	call := csiCall{method: path.Base(info.FullMethod)}
	if of, ok := request.(interface{ GetVolumeId() string }); ok {
		call.volume = of.GetVolumeId()
	}
	d.mu.Lock()
	delay, places := d.delay, d.places
	d.busy++
	d.most = max(d.most, d.busy)
	d.mu.Unlock()
	if places != nil {
		places <- struct{}{}
		defer func() { <-places }()
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	response, err := work(ctx, request)
	call.ended, call.err = time.Now(), err
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	d.calls = append(d.calls, call)
	return response, err
}

// seen has the RPCs that were answered, and the most that there were at a time.
func (d *csiDriver) seen() ([]csiCall, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[:len(d.calls):len(d.calls)], d.most
}

// waitFor returns once this RPC was answered for each of the pods' volumes, with the moments.
func (d *csiDriver) waitFor(method string, uids []string) ([]time.Time, error) {
	var moments []time.Time
	looked := 0
	for start := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		calls, _ := d.seen()
		for _, call := range calls[looked:] {
			if call.err != nil {
				return nil, fmt.Errorf("the CSI driver refused %s of %s: %w", call.method, call.volume, call.err)
			}
			if call.method == method {
				moments = append(moments, call.ended)
			}
		}
		looked = len(calls)
		if len(moments) >= len(uids) {
			return moments, nil
		}
		if time.Since(start) > giveUpAfter {
			return nil, &lateError{len(uids) - len(moments), fmt.Sprintf("%s came for %d of %d volumes", method, len(moments), len(uids))}
		}
	}
}

func (d *csiDriver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: csiDriverName, VendorVersion: "1"}, nil
}

func (d *csiDriver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (d *csiDriver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *csiDriver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "bench"}, nil
}

func (d *csiDriver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	stages := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{
		{Type: &csi.NodeServiceCapability_Rpc{Rpc: stages}}}}, nil
}

func (d *csiDriver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	err := unix.Mount(filepath.Join(d.volumes, r.VolumeId), r.StagingTargetPath, "", unix.MS_BIND, "")
	return &csi.NodeStageVolumeResponse{}, internal("stage", r.VolumeId, err)
}

func (d *csiDriver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	err := os.Mkdir(r.TargetPath, 0o750)
	if err == nil {
		err = unix.Mount(r.StagingTargetPath, r.TargetPath, "", unix.MS_BIND, "")
	}
	return &csi.NodePublishVolumeResponse{}, internal("publish", r.VolumeId, err)
}

func (d *csiDriver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	err := unix.Unmount(r.TargetPath, 0)
	if err == nil {
		err = os.Remove(r.TargetPath)
	}
	return &csi.NodeUnpublishVolumeResponse{}, internal("unpublish", r.VolumeId, err)
}

func (d *csiDriver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, internal("unstage", r.VolumeId, unix.Unmount(r.StagingTargetPath, 0))
}

// internal is no idempotent driver's answer: a second call about the same volume fails, and so does the row.
func internal(what, volume string, err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Internal, fmt.Sprintf("%s %s: %v", what, volume, err))
}
