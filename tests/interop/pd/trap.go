package main

import (
	"os"
	"strings"
	"syscall"
	"time"
)

// trap is the name of a file that a test may write, of one line: METHOD before|after die|hold. The next call of this
// method springs it, before it is carried out, or when it is done and not yet answered: the file gets the name FILE.sprung,
// and the server kills itself, or holds the call until a test has removed FILE.sprung.
type trap string

// pass returns when the call may go on. One call alone springs a trap: the other finds no file that it could rename.
func (t trap) pass(method, when string) {
	text, err := os.ReadFile(string(t))
	if err != nil {
		return
	}
	words := strings.Fields(string(text))
	if len(words) != 3 || words[0] != method || words[1] != when {
		return
	}
	sprung := string(t) + ".sprung"
	if os.Rename(string(t), sprung) != nil {
		return
	}
	if words[2] == "die" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	for _, err := os.Stat(sprung); err == nil; _, err = os.Stat(sprung) {
		time.Sleep(5 * time.Millisecond)
	}
}
