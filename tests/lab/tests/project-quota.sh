# Integration tests of project quota, which not every kernel has: the effects, and volumes that are
# directories, on a real ext4 and xfs; and those of btrfs on Linux 6.1.
# needs: integration-tests
. /lab/lib/lab.sh
. /lab/lib/programs.sh
run_programs 'mounter/mounter_root_test:TreeTest.*:*ProjectQuotaTest.*' \
  'pool/pool_root_test:RealTreesTest.*:*RealProjectsTest.*'
