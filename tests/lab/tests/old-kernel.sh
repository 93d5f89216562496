# Integration tests built on this machine, on a kernel without statmount, mount events and the rest of
# what came after 6.1: the degraded paths on the kernel that really lacks the others.
# needs: integration-tests
. /lab/lib/lab.sh
project=$(cat /lab/project)
build=$(cat /lab/build-path)
mkdir -p "$(dirname "$build")" "$project"
ln -s /lab/build "$build"
ln -s /lab/examples "$project/examples"
export VOLUMED_SEED=1165684726 VOLUMED_SEQUENCES=300
modprobe -a loop fuse

programs=(os/bind_anchor_test os/effects_test os/atomic_payload_test os/walks_test
  os/kept_mount_table_test os/worker_kernel_test plugins/plugins_root_test
  mounter/device_identity_test differential/kernel_differential_test agent/agent_whole_life_test)
failed=0
for program in "${programs[@]}"; do
  log=/lab/out/$(basename "$program").log
  from=$(now)
  status=0
  timeout 100 "$build/tests/integration/$program" >"$log" 2>&1 || status=$?
  echo "$program: exit $status after $(since "$from") s, $(grep -oE '\[  (PASSED|SKIPPED|FAILED)  ?\] [0-9]+ test' "$log" | tr -s '[] \n' ' ')"
  grep -oE 'skipped: .*' "$log" | sort | uniq -c || true
  ((status == 0)) && continue
  failed=$((failed + 1))
  grep -E '(\[  FAILED  \]|Failure$|Actual|Expected|Which is)' "$log" | head -n 12 || true
done
uname -r
expect "programs that failed" $failed 0
say "up for $(now) s"
