package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

const (
	volumeBytes = 64 << 20
	blockBytes  = 4096
	// Every second block of a volume is written: in messages of so many ranges that is more than what a stream has of its
	// window before anybody reads it.
	writtenBlocks = volumeBytes / blockBytes / 2
	messageRanges = 64
	streamWindow  = 64 << 10
)

var volumeNames = []string{"one", "two", "three", "four", "five"}

var rawForOneWriter = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func createRequest(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name:               name,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: volumeBytes},
		VolumeCapabilities: []*csi.VolumeCapability{rawForOneWriter},
	}
}

// create returns the id of the one volume of that name.
func (c *client) create(name string) (string, error) {
	id := ""
	err := again(func(ctx context.Context) error {
		made, err := c.controller.CreateVolume(ctx, createRequest(name))
		id = made.GetVolume().GetVolumeId()
		return err
	})
	if err == nil && id == "" {
		err = fmt.Errorf("%s has no id", name)
	}
	return id, err
}

func (c *client) delete(id string) error {
	return again(func(ctx context.Context) error {
		_, err := c.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		return err
	})
}

// list returns the ids of all volumes, which it gets in pages of so many.
func (c *client) list(page int32) (ids []string, pages int, err error) {
	token := ""
	for {
		var got *csi.ListVolumesResponse
		if err = again(func(ctx context.Context) (err error) {
			got, err = c.controller.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: page, StartingToken: token})
			return err
		}); err != nil {
			return nil, 0, err
		}
		pages++
		if len(got.GetEntries()) > int(page) {
			return nil, 0, fmt.Errorf("%d entries in a page of %d", len(got.GetEntries()), page)
		}
		for _, entry := range got.GetEntries() {
			ids = append(ids, entry.GetVolume().GetVolumeId())
		}
		if token = got.GetNextToken(); token == "" {
			return ids, pages, nil
		}
	}
}

func (c *client) wantVolumes(count int) error {
	ids, _, err := c.list(100)
	if err == nil && len(ids) != count {
		err = fmt.Errorf("there are %d volumes and not %d", len(ids), count)
	}
	return err
}

type lived struct {
	*client
	at       places
	volumes  []string
	snapshot string
}

// life is a volume's, with calls that end badly in it; at its end nothing is left.
func life(at places) ([]check, error) {
	c, err := newClient(at, grpc.WithInitialWindowSize(streamWindow))
	l := &lived{client: c, at: at}
	return []check{
		{"Probe", l.probe},
		{"GetPluginInfo", l.pluginInfo},
		{"CreateVolume", l.createAll},
		{"ListVolumes in pages", l.listPages},
		{"NodeStageVolume, NodePublishVolume", l.publish},
		{"CreateSnapshot", l.cut},
		{"GetMetadataAllocated", l.streamAll},
		{"a stream that is given up", l.streamGivenUp},
		{"a stream that nobody reads", l.streamUnread},
		{"a stream of nothing", l.streamOfNothing},
		{"a call that is cancelled", l.cancelled},
		{"a call whose deadline passes", l.late},
		{"a message over the limit", l.tooLarge},
		{"an answer over the limit", l.answerTooLarge},
		{"DeleteSnapshot, DeleteVolume", l.deleteAll},
		{"one connection", l.wantOneConnection},
	}, err
}

func (l *lived) probe() error {
	return again(func(ctx context.Context) error {
		answer, err := l.identity.Probe(ctx, &csi.ProbeRequest{})
		if err == nil && !answer.GetReady().GetValue() {
			err = fmt.Errorf("it is not ready")
		}
		return err
	})
}

func (l *lived) pluginInfo() error {
	return again(func(ctx context.Context) error {
		answer, err := l.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
		if err == nil && (answer.GetName() != "pool.volumed.io" || answer.GetVendorVersion() == "") {
			err = fmt.Errorf("it is %v", answer)
		}
		return err
	})
}

func (l *lived) createAll() error {
	for _, name := range volumeNames {
		id, err := l.create(name)
		if err != nil {
			return err
		}
		if same, err := l.create(name); err != nil || same != id {
			return fmt.Errorf("%s is %s, and asked for again %s: %v", name, id, same, err)
		}
		l.volumes = append(l.volumes, id)
	}
	return nil
}

func (l *lived) listPages() error {
	ids, pages, err := l.list(2)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	for _, id := range l.volumes {
		if !seen[id] {
			return fmt.Errorf("%s is in no page", id)
		}
	}
	if pages != 3 || len(ids) != len(l.volumes) {
		return fmt.Errorf("%d volumes in %d pages", len(ids), pages)
	}
	_, err = l.controller.ListVolumes(context.Background(), &csi.ListVolumesRequest{StartingToken: "nobody's"})
	return wants(codes.Aborted, err)
}

func (l *lived) publish() error {
	if err := again(func(ctx context.Context) error {
		_, err := l.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: l.volumes[0], StagingTargetPath: l.at.staging, VolumeCapability: rawForOneWriter})
		return err
	}); err != nil {
		return err
	}
	return again(func(ctx context.Context) error {
		_, err := l.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: l.volumes[0],
			StagingTargetPath: l.at.staging, TargetPath: l.at.target, VolumeCapability: rawForOneWriter})
		return err
	})
}

func (l *lived) cut() error {
	device, err := os.OpenFile(l.at.target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer device.Close()
	written := []byte(strings.Repeat("x", blockBytes))
	for n := int64(0); n < writtenBlocks; n++ {
		if _, err := device.WriteAt(written, 2*n*blockBytes); err != nil {
			return err
		}
	}
	if err := device.Sync(); err != nil {
		return err
	}
	return again(func(ctx context.Context) error {
		made, err := l.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{SourceVolumeId: l.volumes[0], Name: "cut"})
		l.snapshot = made.GetSnapshot().GetSnapshotId()
		if err == nil && !made.GetSnapshot().GetReadyToUse() {
			err = fmt.Errorf("it is not ready")
		}
		return err
	})
}

type metadataStream = csi.SnapshotMetadata_GetMetadataAllocatedClient

// stream begins one of small messages.
func (l *lived) stream(ctx context.Context, snapshot string) (metadataStream, error) {
	return l.metadata.GetMetadataAllocated(ctx, &csi.GetMetadataAllocatedRequest{SnapshotId: snapshot, MaxResults: messageRanges})
}

// readAll checks that each written block is told, and returns the messages.
func readAll(all metadataStream) (messages int, err error) {
	told := make([]bool, volumeBytes/blockBytes)
	for {
		part, err := all.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return messages, err
		}
		messages++
		for _, one := range part.GetBlockMetadata() {
			for at := one.GetByteOffset(); at < one.GetByteOffset()+one.GetSizeBytes(); at += blockBytes {
				told[at/blockBytes] = true
			}
		}
	}
	for n := 0; n < writtenBlocks; n++ {
		if !told[2*n] {
			return messages, fmt.Errorf("block %d was written and is not told", 2*n)
		}
	}
	return messages, nil
}

func (l *lived) streamAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := l.stream(ctx, l.snapshot)
	if err != nil {
		return err
	}
	messages, err := readAll(all)
	if err == nil && messages < writtenBlocks/messageRanges {
		err = fmt.Errorf("%d messages are too few for what is to be shown by them", messages)
	}
	return err
}

func (l *lived) streamOfNothing() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	none, err := l.stream(ctx, "no-such-snapshot")
	if err != nil {
		return err
	}
	_, err = none.Recv()
	return wants(codes.NotFound, err)
}

func (l *lived) deleteAll() error {
	steps := []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := l.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: l.snapshot})
			return err
		},
		func(ctx context.Context) error {
			_, err := l.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: l.volumes[0], TargetPath: l.at.target})
			return err
		},
		func(ctx context.Context) error {
			_, err := l.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: l.volumes[0], StagingTargetPath: l.at.staging})
			return err
		},
	}
	for _, step := range steps {
		if err := again(step); err != nil {
			return err
		}
	}
	for _, id := range append(l.volumes, l.volumes...) { // what is gone is deleted, too
		if err := l.delete(id); err != nil {
			return err
		}
	}
	return l.wantVolumes(0)
}

func (c *client) wantOneConnection() error {
	if made := c.connections.Load(); made != 1 {
		return fmt.Errorf("%d connections were made", made)
	}
	return nil
}
