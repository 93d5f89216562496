package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A manifest may hold half a million YAML nodes; a pod of the load is about sixty.
const podsOfOneFile = 5000

// volumed is the real agent with its real workers.
type volumed struct {
	*process
	binary, protoSet string
	load             load
	how              string // hand-over
	csiCalls         int
	metrics          string // host:port
	api              *agentAPI

	mu    sync.Mutex
	files map[string]string // of the manifest directory: a pod's uid -> file
}

func newVolumed(o options) (*volumed, error) {
	common, err := newProcess("volumed", o.scratch, o.cores)
	if err != nil {
		return nil, err
	}
	return &volumed{process: common, binary: o.volumed, protoSet: o.protoSet, load: o.load, how: o.handOver, csiCalls: o.csiCalls, files: map[string]string{}}, nil
}

func (v *volumed) socket() string    { return filepath.Join(v.scratch, "socket") }
func (v *volumed) manifests() string { return filepath.Join(v.scratch, "manifests") }

const defaultCSICalls = 64

const volumedConfig = `root: %[1]s/root
manifest-dir: [%[1]s/manifests]
socket: %[1]s/socket
socket-group: ""
node-name: bench
metrics-address: "%[2]s"
log-level: warning
removal-settle: 100ms
volume-plugin-dir: ""
csi-calls-per-driver: %[3]d
`

func (v *volumed) start() error {
	if err := os.MkdirAll(v.manifests(), 0o755); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	v.metrics = address
	config := filepath.Join(v.scratch, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, volumedConfig, v.scratch, address, v.csiCalls), 0o644); err != nil {
		return err
	}
	if err := v.spawn(v.binary, "run", "--config", config); err != nil {
		return err
	}
	if v.api != nil {
		v.api.conn.Close()
	}
	if v.api, err = newAgentAPI(v.protoSet, v.socket()); err != nil {
		return err
	}
	return untilAnswers(v.process, v.answersReady)
}

func (v *volumed) answersReady() error {
	status, err := v.api.call(context.Background(), "GetStatus", "{}")
	if err != nil {
		v.api.conn.ResetConnectBackoff() // gRPC would wait a second
		return err
	}
	if !field(status, "ready").Bool() {
		return errors.New(field(status, "not_ready_reason").String())
	}
	return nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

func (v *volumed) prepare(uids []string) (func() error, error) {
	size := podsOfOneFile
	if v.how == "files" {
		size = 1
	}
	var gives []func() error
	for part := range slices.Chunk(uids, size) {
		give, err := v.preparePart(part)
		if err != nil {
			return nil, err
		}
		gives = append(gives, give)
	}
	return func() error {
		for _, give := range gives {
			if err := give(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (v *volumed) preparePart(uids []string) (func() error, error) {
	manifest := v.load.manifest(uids)
	if v.how == "apply" {
		return func() error { return v.apply(manifest) }, nil
	}
	name := filepath.Join(v.manifests(), uids[0]+".yaml")
	v.mu.Lock()
	for _, uid := range uids {
		v.files[uid] = name
	}
	v.mu.Unlock()
	return prepareFile(name, manifest)
}

func (v *volumed) apply(manifest string) error {
	request := dynamicpb.NewMessage(v.api.method("Apply").Input())
	request.Set(request.Descriptor().Fields().ByName("file"), protoreflect.ValueOfString("bench"))
	request.Set(request.Descriptor().Fields().ByName("manifest"), protoreflect.ValueOfBytes([]byte(manifest)))
	answer, err := v.api.send(context.Background(), "Apply", request)
	if err != nil {
		return err
	}
	if problems := field(answer, "problems").List(); problems.Len() > 0 {
		return fmt.Errorf("apply: %v", problems.Get(0))
	}
	return nil
}

// prepareFile writes a file under a name that the agent does not read; what it returns renames it into
// place, as every careful writer does.
func prepareFile(name, text string) (func() error, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	hidden := filepath.Join(filepath.Dir(name), "."+filepath.Base(name))
	return func() error { return os.Rename(hidden, name) }, os.WriteFile(hidden, []byte(text), 0o600)
}

func (v *volumed) putObjects(manifest string) error {
	rename, err := prepareFile(filepath.Join(v.manifests(), "objects.yaml"), manifest)
	if err != nil {
		return err
	}
	return rename()
}

func (v *volumed) takeAway(uids []string) error {
	if v.how == "apply" {
		return v.deleteEach(uids)
	}
	removed := map[string]bool{}
	for _, uid := range uids {
		if name := v.files[uid]; !removed[name] {
			if err := os.Remove(name); err != nil {
				return err
			}
			removed[name] = true
		}
		delete(v.files, uid)
	}
	return nil
}

// There is no call that deletes many pods.
func (v *volumed) deleteEach(uids []string) error {
	return sixteenAtATime(uids, func(uid string) error {
		request := fmt.Sprintf(`{"object": {"kind": "Pod", "uid": %q}}`, uid)
		_, err := v.api.call(context.Background(), "Delete", request)
		return err
	})
}

// Each pod is waited for: the agent tells when it is ready, and needs not be asked again and again.
func (v *volumed) waitAllReady(ctx context.Context, uids []string) error {
	return sixteenAtATime(uids, func(uid string) error {
		return v.api.waitReady(ctx, uid)
	})
}

func sixteenAtATime(uids []string, work func(uid string) error) error {
	const callers = 16
	queue := make(chan string, len(uids))
	for _, uid := range uids {
		queue <- uid
	}
	close(queue)
	problems := make(chan error, callers)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for uid := range queue {
				if err := work(uid); err != nil {
					problems <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(problems)
	return <-problems
}

func (v *volumed) syncNow() error { return nil } // it acts on the change itself

func (v *volumed) queries() map[string]func() error {
	get := func(path string) func() error {
		return func() error {
			request, err := http.NewRequest("GET", "http://"+v.metrics+path, nil)
			if err != nil {
				return err
			}
			return httpCall(http.DefaultClient, request, nil)
		}
	}
	return map[string]func() error{"healthz": get("/healthz"), "metrics": get("/metrics"), "status": func() error {
		_, err := v.api.call(context.Background(), "GetPods", "{}")
		return err
	}}
}
