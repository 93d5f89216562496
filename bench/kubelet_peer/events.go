package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// logRecorder writes events to the log, for there is no API server that would take them.
type logRecorder struct{}

func (logRecorder) Event(_ runtime.Object, kind, reason, message string) {
	if kind == "Warning" {
		klog.InfoS("event", "reason", reason, "message", message)
	}
}

func (r logRecorder) Eventf(object runtime.Object, kind, reason, format string, words ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, words...))
}

func (r logRecorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, words ...any) {
	r.Eventf(object, kind, reason, format, words...)
}
