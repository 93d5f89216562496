package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run ends the program with the cloud: one that outlived it would act beside the next cloud. The signal comes when the
// thread ends that started it, so this one waits.
func run(name string, arguments ...string) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := exec.Command(name, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

// copyImage makes the copy under another name first: a copy that has its own name is whole.
func copyImage(from, to string) error {
	if _, err := run("cp", "--sparse=always", "--reflink=auto", from, to+".new"); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// loopsBelow has the image of each loop device whose image lies in the folder.
func loopsBelow(folder string) (map[string]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, file := range files {
		image, err := os.ReadFile(file)
		if err != nil {
			continue // detached meanwhile
		}
		if name := strings.TrimSpace(string(image)); strings.HasPrefix(name, folder+"/") {
			found["/dev/"+strings.Split(file, "/")[3]] = name
		}
	}
	return found, nil
}

// attachLoop tries again for a while: another program may take the free device first.
func attachLoop(image string, readOnly bool) (string, error) {
	arguments := []string{"--find", "--show"}
	if readOnly {
		arguments = append(arguments, "--read-only")
	}
	var err error
	for tries := 0; tries < 20; tries++ {
		var device string
		if device, err = run("losetup", append(arguments, image)...); err == nil {
			return device, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", err
}

// detachLoop says on standard output if something still used the device: a caller that unstages first never sees
// that. Such a device goes with its last user. Of device nodes no more are left than a machine usually has.
func detachLoop(device string) error {
	file, err := os.OpenFile(device, os.O_RDONLY|syscall.O_EXCL, 0)
	if err == nil {
		file.Close()
	} else if os.IsNotExist(err) {
		return nil
	} else {
		fmt.Printf("DetachedInUse %s %v\n", device, err)
	}
	if _, err := run("losetup", "--detach", device); err != nil {
		return err
	}
	const usual = 8
	number, err := strconv.Atoi(strings.TrimPrefix(device, "/dev/loop"))
	if err != nil || number < usual {
		return nil
	}
	if control, err := os.Open("/dev/loop-control"); err == nil {
		_ = unix.IoctlSetInt(int(control.Fd()), unix.LOOP_CTL_REMOVE, number) // it stays if it is in use
		control.Close()
	}
	return nil
}
