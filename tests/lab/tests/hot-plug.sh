# Devices of each kind come, grow, and go while they are used; the library's own test.
# needs: nothing
. /lab/lib/lab.sh
mkdir -p /mnt/a

say "virtio-blk, with ext4 that grows while it is mounted"
disk=$(plug virtio-blk vol-a 256)
expect "path" "$disk" /dev/disk/by-id/virtio-vol-a
must mkfs.ext4 -q "$disk"
must mount "$disk" /mnt/a
before=$(stat -fc %b /mnt/a)
resize vol-a 512
must resize2fs "$disk"
expect "the filesystem has grown" "$(($(stat -fc %b /mnt/a) > before * 3 / 2))" 1
expect "an unplug of what is mounted is refused" "$(unplug vol-a 2>&1)" "vol-a is mounted"
echo kept >/mnt/a/note
must umount /mnt/a
unplug vol-a

say "the same disk again, and its surprise removal"
disk=$(replug vol-a)
must mount "$disk" /mnt/a
expect "what was on it" "$(cat /mnt/a/note)" kept
yank vol-a
if echo new >/mnt/a/note2 && sync -f /mnt/a; then fail "a disk that is gone takes writes"; fi
expect "the kernel still lists its mount" "$(findmnt -no TARGET /mnt/a)" /mnt/a
must umount /mnt/a

say "virtio-scsi, with xfs that grows"
disk=$(plug virtio-scsi vol-b 512)
expect_text "path" "$disk" /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_vol-b
must mkfs.xfs -q "$disk"
must mount "$disk" /mnt/a
before=$(stat -fc %b /mnt/a)
resize vol-b 1024
must xfs_growfs /mnt/a
expect "the filesystem has grown" "$(($(stat -fc %b /mnt/a) > before * 3 / 2))" 1
must umount /mnt/a
unplug vol-b

say "nvme, with btrfs"
disk=$(plug nvme vol-c 256)
expect_text "path" "$disk" /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_vol-c
must mkfs.btrfs -q "$disk"
must mount "$disk" /mnt/a
yank vol-c
if echo new >/mnt/a/note && sync -f /mnt/a; then fail "a disk that is gone takes writes"; fi
must umount /mnt/a
say "up for $(now) s"
