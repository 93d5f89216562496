package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

const namespaceMark = "BESIDE_IN_OWN_MOUNT_NAMESPACE"

// enterOwnMountNamespace runs this program again in a mount namespace of its own, so that no mount is
// left behind whatever happens, and the machine's other mounts cost nobody anything. True in the
// inner one. unshare(2) would not do: it is about one thread, and Go has many.
func enterOwnMountNamespace() (bool, error) {
	if os.Getenv(namespaceMark) != "" {
		return true, nil
	}
	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), namespaceMark+"=1")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Go makes the new namespace's mounts private.
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	err := again.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return false, err
}
