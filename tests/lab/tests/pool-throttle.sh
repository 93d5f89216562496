# The throttle of a pool's volume by io.max of cgroup version 2, which is this machine's and not every
# machine's that runs the other tests: what the kernel shows, and what a writer is held to.
# needs: integration-tests
. /lab/lib/lab.sh
. /lab/lib/programs.sh

say "Linux $(uname -r): $(stat -fc %T /sys/fs/cgroup), controllers: $(cat /sys/fs/cgroup/cgroup.controllers)"
expect "hierarchies of version 1 with blkio" "$(grep -c ' cgroup .*blkio' /proc/mounts)" 0
run_programs 'pool/pool_root_test:RealThrottleTest.*'
log=/lab/out/pool_root_test.log
expect "tests that were skipped" "$(grep -c 'skipped:' "$log")" 0
grep -E '[0-9]+ bytes at' "$log" || fail "no writer was held to anything"
