# Local volumes on disks of each filesystem, under the shipped unit with its sandbox: probed, made,
# checked, mounted, taken away. A disk that is not blank is refused.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
uid=22222222-0000-4000-8000-000000000001
other=22222222-0000-4000-8000-000000000002
install_volumed
start_volumed

ext4=$(plug virtio-blk disk-ext4 128)
xfs=$(plug virtio-scsi disk-xfs 320)
btrfs=$(plug nvme disk-btrfs 256)
used=$(plug virtio-blk disk-used 64)
echo "accounts that nobody has a copy of" | dd of="$used" bs=512 seek=9000 conv=fsync status=none

say "three disks, each made by the agent for its filesystem"
{
  local_volume ext4 "$ext4" ext4
  local_volume xfs "$xfs" xfs
  local_volume btrfs "$btrfs" btrfs
  pod app $uid ext4 xfs btrfs
} >/etc/volumed/manifests/app.yaml
wait_ready app 90
for name in ext4 xfs btrfs; do
  path=$(volume_path $uid $name)
  expect "filesystem of $name" "$(findmnt -no FSTYPE "$path")" $name
  echo "$name" >"$path/note"
done

say "the disk that is not blank"
{ local_volume used "$used" ext4; pod refused $other used; } >/etc/volumed/manifests/refused.yaml
must wait_until 30 explains refused "is not formatted"
expect "its content" "$(dd if="$used" bs=512 skip=9000 count=1 status=none | head -c 8)" accounts
rm /etc/volumed/manifests/refused.yaml
wait_gone refused

say "the pod goes, its disks are unmounted; they come back with what was on them, checked"
mv /etc/volumed/manifests/app.yaml /root/app.yaml
wait_gone app 60
must wait_until 30 nothing_mounted
cp /root/app.yaml /etc/volumed/manifests/app.yaml
wait_ready app 90
for name in ext4 xfs btrfs; do
  expect "data of $name" "$(cat "$(volume_path $uid $name)/note")" $name
done
expect "workers' refusals by the unit's sandbox" "$(journalctl -b -u volumed | grep -ciE 'operation not permitted|permission denied' || true)" 0
say "up for $(now) s"
