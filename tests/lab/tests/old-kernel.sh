# Integration tests on a kernel without statmount, mount events and the rest of what came after 6.1:
# the effects themselves, by the paths that such a kernel leaves.
# needs: integration-tests
. /lab/lib/lab.sh
. /lab/lib/programs.sh
run_programs os/bind_anchor_test os/effects_test os/atomic_payload_test \
  os/kept_mount_table_test plugins/plugins_root_test
