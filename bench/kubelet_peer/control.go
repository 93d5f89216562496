package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/pprof"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
)

// controlAPI is served on the unix socket. README.md lists the calls.
func controlAPI(objects *objectStore, pods *pods) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apply", func(w http.ResponseWriter, r *http.Request) {
		manifest, err := io.ReadAll(r.Body)
		if err == nil {
			err = apply(objects, pods, manifest)
		}
		answer(w, struct{}{}, err)
	})
	mux.HandleFunc("POST /delete", func(w http.ResponseWriter, r *http.Request) {
		var uids []types.UID
		err := json.NewDecoder(r.Body).Decode(&uids)
		if err == nil {
			err = pods.remove(uids)
		}
		answer(w, struct{}{}, err)
	})
	mux.HandleFunc("POST /sync", func(w http.ResponseWriter, r *http.Request) {
		pods.syncAll()
		answer(w, struct{}{}, nil)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		answer(w, pods.status(), nil)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "ok")
	})
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	return mux
}

func answer(w http.ResponseWriter, value any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(value)
}
