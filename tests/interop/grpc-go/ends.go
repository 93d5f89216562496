package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
)

const (
	// For a call to be on its way to a daemon that does not read.
	sent = 300 * time.Millisecond
	// grpc-go pings no more often. A server that does not want it has closed the connection after three of them.
	pingEach = 10 * time.Second
	quiet    = 4*pingEach + pingEach/2
)

// whileStopped makes a call that the daemon gets after it has ended here.
func (l *lived) whileStopped(call func() error) error {
	if err := syscall.Kill(l.at.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	defer syscall.Kill(l.at.pid, syscall.SIGCONT)
	return call()
}

// isMadeOnce repeats a call that has ended without an answer, and takes the volume away.
func (c *client) isMadeOnce(name string, others int) error {
	id, err := c.create(name)
	if err != nil {
		return err
	}
	if err := c.wantVolumes(others + 1); err != nil {
		return err
	}
	return c.delete(id)
}

func (l *lived) cancelled() error {
	if err := l.whileStopped(func() error {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(sent, cancel)
		_, err := l.controller.CreateVolume(ctx, createRequest("cancelled"))
		return wants(codes.Canceled, err)
	}); err != nil {
		return err
	}
	return l.isMadeOnce("cancelled", len(l.volumes))
}

func (l *lived) late() error {
	if err := l.whileStopped(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), sent)
		defer cancel()
		_, err := l.controller.CreateVolume(ctx, createRequest("late"))
		return wants(codes.DeadlineExceeded, err)
	}); err != nil {
		return err
	}
	return l.isMadeOnce("late", len(l.volumes))
}

func (l *lived) tooLarge() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request := createRequest("large")
	request.Parameters = map[string]string{"large": strings.Repeat("x", 5<<20)}
	_, err := l.controller.CreateVolume(ctx, request)
	return wants(codes.ResourceExhausted, err)
}

func (l *lived) answerTooLarge() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := l.controller.ListVolumes(ctx, &csi.ListVolumesRequest{}, grpc.MaxCallRecvMsgSize(16))
	return wants(codes.ResourceExhausted, err)
}

func (l *lived) streamGivenUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := l.stream(ctx, l.snapshot)
	if err != nil {
		return err
	}
	if _, err := all.Recv(); err != nil {
		return err
	}
	cancel()
	for err == nil { // what has come already is read first
		_, err = all.Recv()
	}
	return wants(codes.Canceled, err)
}

// streamUnread shows that other calls of the connection go on beside it.
func (l *lived) streamUnread() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := l.stream(ctx, l.snapshot)
	if err != nil {
		return err
	}
	time.Sleep(sent)
	if err := l.probe(); err != nil {
		return err
	}
	_, err = readAll(all)
	return err
}

// restart has the daemon die in a call; whoever runs this starts it anew when it reads "a call whose driver dies".
func restart(at places) ([]check, error) {
	c, err := newClient(at)
	l := &lived{client: c, at: at}
	return []check{
		{"Probe", l.probe},
		{"a call whose driver dies", l.dies},
		{"the driver is back", l.isBack},
		{"it was made once", func() error { return l.isMadeOnce("again", 0) }},
	}, err
}

func (l *lived) dies() error {
	if err := syscall.Kill(l.at.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	time.AfterFunc(sent, func() { _ = syscall.Kill(l.at.pid, syscall.SIGKILL) })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := l.controller.CreateVolume(ctx, createRequest("again"))
	return wants(codes.Unavailable, err)
}

// isBack makes one call alone, which waits for the driver.
func (l *lived) isBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := l.identity.Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if made := l.connections.Load(); err == nil && made < 2 {
		err = fmt.Errorf("%d connections were made", made)
	}
	return err
}

// keepAlive has two connections that ping: one has a stream that nobody reads meanwhile, the other one no call.
func keepAlive(at places) ([]check, error) {
	pings := grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEach, Timeout: pingEach, PermitWithoutStream: true})
	c, err := newClient(at, pings, grpc.WithInitialWindowSize(streamWindow))
	if err != nil {
		return nil, err
	}
	idle, err := newClient(at, pings)
	l, i := &lived{client: c, at: at}, &lived{client: idle, at: at}
	return []check{
		{"Probe", i.probe},
		{"a volume with a snapshot", func() error {
			id, err := l.create("one")
			l.volumes = []string{id}
			if err == nil {
				err = l.publish()
			}
			if err == nil {
				err = l.cut()
			}
			return err
		}},
		{"a stream goes on after pings", l.streamOverPings},
		{"its connection is the first one", l.wantOneConnection},
		{"a call goes on after pings", i.probe},
		{"its connection is the first one, too", i.wantOneConnection},
		{"DeleteSnapshot, DeleteVolume", l.deleteAll},
	}, err
}

func (l *lived) streamOverPings() error {
	ctx, cancel := context.WithTimeout(context.Background(), quiet+patience)
	defer cancel()
	all, err := l.stream(ctx, l.snapshot)
	if err != nil {
		return err
	}
	time.Sleep(quiet)
	_, err = readAll(all)
	return err
}
