package main

import (
	"context"
	"fmt"
	"slices"
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
	// Of a source the driver makes a volume, which is no device; it also knows whose the name is.
	if request.GetVolumeContentSource() != nil {
		return d.driver.CreateVolume(ctx, request)
	}
	// These are the driver's to refuse.
	if request.GetName() == "" || len(request.GetVolumeCapabilities()) == 0 {
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

// isShown is whether the suite has made the volume: a device without a name is none of its.
func (d *devices) isShown(id string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return !slices.ContainsFunc(d.free, func(volume *csi.Volume) bool { return volume.GetVolumeId() == id })
}

// list asks for one volume after the other, so that the token behind each that is shown is the driver's own.
func (d *devices) list(ctx context.Context, request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	if request.GetMaxEntries() < 0 {
		return d.driver.ListVolumes(ctx, request)
	}
	shown := &csi.ListVolumesResponse{}
	behind := ""
	for token := request.GetStartingToken(); ; {
		page, err := d.driver.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 1, StartingToken: token})
		if err != nil {
			return nil, err
		}
		token = page.GetNextToken()
		for _, entry := range page.GetEntries() {
			if !d.isShown(entry.GetVolume().GetVolumeId()) {
				continue
			}
			if request.GetMaxEntries() > 0 && len(shown.Entries) == int(request.GetMaxEntries()) {
				shown.NextToken = behind
				return shown, nil
			}
			shown.Entries = append(shown.Entries, entry)
			behind = token
		}
		if token == "" {
			return shown, nil
		}
	}
}
