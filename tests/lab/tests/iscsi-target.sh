# An iSCSI target that pauses, is cut off and dies; the library's own test.
# needs: nothing
. /lab/lib/lab.sh
. /lab/lib/server.sh
. /lab/lib/iscsi.sh
server_up
iscsi_target_start 64
iscsi_initiator 3
disk=$(iscsi_login)
mkdir -p /mnt/a
must mkfs.ext4 -q "$disk"
read_it() { dd if="$disk" of=/dev/null bs=4096 count=1 iflag=direct status=none 2>&1; }

say "a pause shorter than the initiator's patience"
iscsi_target_pause
(sleep 1; iscsi_target_resume) &
must read_it

say "the cable is pulled"
server_cut
from=$(now)
expect_text "a read" "$(read_it || true)" "Input/output error"
say "it failed after $(since "$from") s"
server_join
must wait_until 30 read_it

say "the target dies under a mounted filesystem"
must mount "$disk" /mnt/a
iscsi_target_kill
expect_text "a write" "$( (echo x >/mnt/a/f; sync -f /mnt/a) 2>&1 || true)" "Input/output error"
must umount /mnt/a
must timeout 30 iscsiadm -m node -T $iscsi_target -p $server_address --logout
say "up for $(now) s"
