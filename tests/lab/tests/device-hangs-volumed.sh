# Devices that are slow, or hang, under local volumes with the shipped unit: a format past its deadline
# is counted as slow and not cut off; a worker that cannot be ended is counted as stuck; other pods and
# the next agent go on; all ends when the device is back.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/dm.sh
. /lab/lib/sick.sh

install_volumed
# Short, as nothing here is waited for in earnest.
configure "deadline-unmount: 5s"
{
  sick_disk hung ext4
  sick_disk good ext4
  sick_disk slow ext4
} | manifest volumes
start_volumed
for name in hung good; do
  sick_pod $name
  wait_ready $name 90
done

say "a slow device: its mkfs is past its deadline, is counted, and is not cut off"
configure "deadline-unmount: 5s" "deadline-mount: 3s"
must systemctl reload volumed
# Reading shows at once that it is blank.
dm_delay slow 0 2000
sick_pod slow
wait_until 60 counts 'volumed_workers{state="slow"}' || fail "no slow worker: $(volumectl explain slow)"
echo "ok: a slow worker is counted"
configure "deadline-unmount: 5s"
must systemctl reload volumed
goes_on "while a device is slow"
dm_heal slow
wait_ready slow 120
must wait_until 30 counts_none 'volumed_workers{state="slow"}'

say "a device that hangs while its pod leaves"
dm_hang hung
no_sick_pod hung
must wait_until 90 counts 'volumed_stuck_operations{'
# The pod itself could leave; it is the disk's one unmount that hangs.
wait_gone hung
status_names() { volumectl status | grep -qF -- "$1"; }
must wait_until 30 status_names "/mounts/hung"
volumectl top --once
goes_on "while a worker is stuck"
agent=$(property MainPID)
must systemctl restart volumed
expect "another agent" "$([[ $(property MainPID) != "$agent" ]] && echo yes)" yes
goes_on "after a restart with a stuck worker"
dm_heal hung
must wait_until 60 counts_none 'volumed_stuck_operations{'
must wait_until 60 not findmnt -n --source /dev/mapper/hung
must e2fsck -fn /dev/mapper/hung
expect "every line of the good pod" "$(wc -l <"$(sick_place good)/note")" 3
say "up for $(now) s"
