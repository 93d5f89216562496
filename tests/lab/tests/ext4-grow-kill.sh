# The agent is killed at random moments, every second time with its workers, while it makes an ext4
# larger that a pod writes to: the next agent finishes it, nothing is lost, nothing is unmounted, and
# the filesystem is clean. The device is slow, so that a growth takes a second or two.
# As many rounds as 60 seconds allow, with two at least.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/dm.sh
uid=44444444-0000-4000-8000-000000000011
budget=60
size=64
round=0
unfinished=0
agent_is_new() { [[ $(property MainPID) != "$1" && $(property SubState) == running ]]; }

# As many kills as a test likes.
install_volumed
mkdir -p /etc/systemd/system/volumed.service.d
printf '[Unit]\nStartLimitIntervalSec=0\n' >/etc/systemd/system/volumed.service.d/lab.conf
must systemctl daemon-reload
start_volumed
disk=$(plug virtio-blk disk $size)
grow_type[grow]=ext4
grow_path[grow]=$(dm_make grow "$disk")
grow_manifest grow $uid $size
wait_ready grow 60
grow_fill grow
writer_start grow
device_mount=$(awk '$5 ~ /plugins.*\/grow$/ { print $1 }' /proc/1/mountinfo)
: "${device_mount:?}"

from=$(now)
while ((round < 2)) || awk -v t="$(since "$from")" -v budget=$budget 'BEGIN { exit !(t < budget) }'; do
  round=$((round + 1))
  size=$((size + 256))
  resize disk $size
  dm_delay grow 40
  agent=$(property MainPID)
  grow_manifest grow $uid $size
  moment=$((RANDOM % 2000))
  sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
  already=$(grow_bytes grow)
  who=main
  ((round % 2 == 0)) || who=all
  must systemctl kill --signal=KILL --kill-who=$who volumed
  dm_heal grow
  must wait_until 60 agent_is_new "$agent"
  wait_until 90 grow_has grow $size ||
    fail "round $round: $(grow_bytes grow) bytes: $(volumectl explain grow; volumectl describe pvc grow)"
  ((already > (size << 20) * 4 / 5)) || unfinished=$((unfinished + 1))
  say "round $round: $who killed after $moment ms, with $((already >> 20)) MiB of $size"
  must grow_same grow
  expect "the device's mount is the same" "$(awk '$5 ~ /plugins.*\/grow$/ { print $1 }' /proc/1/mountinfo)" "$device_mount"
done
wait_ready grow 60
writer_stop grow
expect "lines that were lost" "$(writer_lost grow)" 0

say "the pod goes; the filesystem is clean"
rm /etc/volumed/manifests/grow.yaml
wait_gone grow 60
must wait_until 30 nothing_mounted
must e2fsck -fn /dev/mapper/grow
say "$round rounds, $unfinished of them before the growth was done; up for $(now) s"
