package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// peer is kubelet's volume manager, as bench/kubelet_peer runs it.
type peer struct {
	*process
	binary  string
	load    load
	apiQPS  int
	client  http.Client
	objects string

	mu   sync.Mutex
	pods []string // as an API server would have them at a restart
}

func newPeer(o options) (*peer, error) {
	common, err := newProcess("kubelet", o.scratch, o.cores)
	if err != nil {
		return nil, err
	}
	p := &peer{process: common, binary: o.peer, load: o.load, apiQPS: o.apiQPS}
	p.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.socket())
	}}
	return p, nil
}

func (p *peer) socket() string { return filepath.Join(p.scratch, "socket") }

func (p *peer) start() error {
	os.Remove(p.socket())
	known := filepath.Join(p.scratch, "objects.json")
	if err := os.MkdirAll(p.scratch, 0o755); err != nil {
		return err
	}
	objects, err := inJSON(p.objects + p.load.manifest(p.pods))
	if err != nil {
		return err
	}
	if err := os.WriteFile(known, objects, 0o600); err != nil {
		return err
	}
	if err := p.spawn(p.binary, "--root", p.root(), "--socket", p.socket(), "--objects", known,
		"--api-qps", strconv.Itoa(p.apiQPS)); err != nil {
		return err
	}
	return untilAnswers(p.process, func() error { return p.call("GET", "/healthz", nil, nil) })
}

func (p *peer) prepare(uids []string) (func() error, error) {
	manifest, err := inJSON(p.load.manifest(uids))
	if err != nil {
		return nil, err
	}
	return func() error {
		p.mu.Lock()
		p.pods = append(p.pods, uids...)
		p.mu.Unlock()
		return p.call("POST", "/apply", manifest, nil)
	}, nil
}

func (p *peer) putObjects(manifest string) error {
	p.objects = manifest
	if p.command == nil {
		return nil // it finds them at its start
	}
	objects, err := inJSON(manifest)
	if err != nil {
		return err
	}
	return p.call("POST", "/apply", objects, nil)
}

// A kubelet gets its objects from an API server, in protobuf. JSON comes near to that; YAML would cost
// the peer half a millisecond per pod that is not a kubelet's.
func inJSON(manifest string) ([]byte, error) {
	var objects []byte
	for document := range strings.SplitSeq(manifest, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		object, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return nil, err
		}
		objects = append(append(objects, object...), '\n')
	}
	return objects, nil
}

func (p *peer) takeAway(uids []string) error {
	body, err := json.Marshal(uids)
	if err != nil {
		return err
	}
	p.pods = without(p.pods, uids)
	return p.call("POST", "/delete", body, nil)
}

func (p *peer) waitAllReady(ctx context.Context, uids []string) error {
	for {
		var status struct{ Pods, Ready int }
		if err := p.call("GET", "/status", nil, &status); err != nil {
			return err
		}
		if status.Pods == len(uids) && status.Ready == len(uids) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond): // it only counts
		}
	}
}

func (p *peer) syncNow() error { return p.call("POST", "/sync", nil, nil) }

func (p *peer) queries() map[string]func() error {
	get := func(path string) func() error {
		return func() error { return p.call("GET", path, nil, nil) }
	}
	return map[string]func() error{"status": get("/status"), "healthz": get("/healthz"), "metrics": get("/metrics")}
}

func (p *peer) call(method, path string, body []byte, into any) error {
	request, err := http.NewRequest(method, "http://peer"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return httpCall(&p.client, request, into)
}

// httpCall reads the whole answer, as a scraper does.
func httpCall(client *http.Client, request *http.Request, into any) error {
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", request.URL, response.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

func untilAnswers(p *process, ask func() error) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %w; its log is %s/log", p.name, err, p.scratch)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func without(all, some []string) []string {
	gone := map[string]bool{}
	for _, uid := range some {
		gone[uid] = true
	}
	var left []string
	for _, uid := range all {
		if !gone[uid] {
			left = append(left, uid)
		}
	}
	return left
}
