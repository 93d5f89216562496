package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// devices are the volumes that were there before the suite. All of them are listed and none is made or taken away: what
// changes is which of them has a name.
type devices struct {
	driver csi.ControllerClient
	mutex  sync.Mutex
	free   []*csi.Volume // the first one is that which has been without a name for the longest time
	named  map[string]*csi.Volume
}

func listDevices(ctx context.Context, driver csi.ControllerClient, count int) (*devices, error) {
	listed, err := driver.ListVolumes(ctx, &csi.ListVolumesRequest{})
	if err != nil {
		return nil, err
	}
	if len(listed.GetEntries()) != count {
		return nil, fmt.Errorf("the driver lists %d volumes, and not %d", len(listed.GetEntries()), count)
	}
	d := &devices{driver: driver, named: map[string]*csi.Volume{}}
	for _, entry := range listed.GetEntries() {
		d.free = append(d.free, entry.GetVolume())
	}
	return d, nil
}

func fits(volume *csi.Volume, wanted *csi.CapacityRange) bool {
	bytes := volume.GetCapacityBytes()
	return bytes >= wanted.GetRequiredBytes() && (wanted.GetLimitBytes() == 0 || bytes <= wanted.GetLimitBytes())
}

func (d *devices) create(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	// These are the driver's to refuse. What it made would be no device.
	if request.GetName() == "" || len(request.GetVolumeCapabilities()) == 0 || request.GetVolumeContentSource() != nil {
		if _, err := d.driver.CreateVolume(ctx, request); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Internal, "the driver has made a volume, which is no listed device")
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if volume, found := d.named[request.GetName()]; found {
		if !fits(volume, request.GetCapacityRange()) {
			return nil, status.Error(codes.AlreadyExists, "the name is that of a device of another size")
		}
		return &csi.CreateVolumeResponse{Volume: volume}, nil
	}
	for i, volume := range d.free {
		if !fits(volume, request.GetCapacityRange()) {
			continue
		}
		if err := d.ask(ctx, volume.GetVolumeId(), request); err != nil {
			return nil, err
		}
		d.free = append(d.free[:i], d.free[i+1:]...)
		d.named[request.GetName()] = volume
		return &csi.CreateVolumeResponse{Volume: volume}, nil
	}
	return nil, status.Error(codes.ResourceExhausted, "no device of this size is without a name")
}

// ask has the driver say whether the device is what the request wants.
func (d *devices) ask(ctx context.Context, id string, request *csi.CreateVolumeRequest) error {
	found, err := d.driver.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: id, VolumeCapabilities: request.GetVolumeCapabilities(), Parameters: request.GetParameters(),
	})
	if err != nil {
		return err
	}
	if found.GetConfirmed() == nil {
		return status.Error(codes.InvalidArgument, found.GetMessage())
	}
	if len(request.GetMutableParameters()) == 0 {
		return nil
	}
	_, err = d.driver.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: id, MutableParameters: request.GetMutableParameters(),
	})
	return err
}

// delete asks the driver, too: it is to refuse for the list, and for nothing else.
func (d *devices) delete(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	response, err := d.driver.DeleteVolume(ctx, request)
	isListed := status.Code(err) == codes.FailedPrecondition &&
		strings.Contains(status.Convert(err).Message(), "listed in the configuration")
	if !isListed {
		return response, err
	}
	for name, volume := range d.named {
		if volume.GetVolumeId() == request.GetVolumeId() {
			delete(d.named, name)
			d.free = append(d.free, volume)
		}
	}
	return &csi.DeleteVolumeResponse{}, nil
}
