# Integration tests on a kernel without statmount, mount events and the rest of what came after 6.1:
# workers, random sequences of effects, a whole agent, by the paths that such a kernel leaves.
# A hundred pods at once take longer than that test waits, where every instruction is emulated.
# needs: integration-tests
. /lab/lib/lab.sh
. /lab/lib/programs.sh
run_programs 'os/os_root_test:WorkerKernelTest.*' 'mounter/mounter_root_test:DeviceIdentityTest.*' \
  differential/kernel_differential_test 'agent/whole_agent_test:WholeLifeTest.*-*ManyPods*'
