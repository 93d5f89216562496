# Integration tests on a kernel without statmount, mount events and the rest of what came after 6.1:
# the effects themselves, by the paths that such a kernel leaves.
# needs: integration-tests
. /lab/lib/lab.sh
. /lab/lib/programs.sh
run_programs 'os/os_root_test:*/BindAnchorTest.*:*/EffectsTest.*:*/AtomicPayloadTest.*:*/EveryWayTest.*' \
  plugins/plugins_root_test
