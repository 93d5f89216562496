# A device that fails, is slow, comes and goes, or hangs; the library's own test.
# needs: nothing
. /lab/lib/lab.sh
. /lab/lib/dm.sh
mkdir -p /mnt/a
truncate -s 128M /tmp/disk.img
loop=$(losetup --find --show /tmp/disk.img)
disk=$(dm_make vol "$loop")
expect "who holds the loop device" "$(ls "/sys/block/${loop#/dev/}/holders")" dm-0
must mkfs.ext4 -q "$disk"
read_it() { dd if="$disk" of=/dev/null bs=4096 count=1 iflag=direct status=none 2>&1; }

say "errors"
dm_error vol
expect_text "a read" "$(read_it || true)" "Input/output error"
dm_heal vol
expect "a read of the healed device" "$(read_it)" ""

say "delay"
dm_delay vol 500
from=$(now)
must read_it
expect "a read takes half a second" "$(awk -v t="$(since "$from")" 'BEGIN { print (t >= 0.5) }')" 1
dm_heal vol

say "flakey"
dm_flakey vol 0 1000
expect_text "a read while it is down" "$(read_it || true)" "Input/output error"
dm_heal vol

say "a hang that SIGKILL does not end"
must mount "$disk" /mnt/a
dm_hang vol
dd if=/dev/zero of=/mnt/a/f bs=4096 count=1 oflag=dsync status=none &
writer=$!
state_is() { [[ $(ps -o stat= "$writer" | cut -c1) == "$1" ]]; }
must wait_until 10 state_is D
kill -9 "$writer"
sleep 0.5
expect "it is still there" "$(ps -o stat= "$writer" | cut -c1)" D
expect "statfs answers" "$(stat -fc %T /mnt/a)" ext2/ext3
dm_heal vol
expect "it ends when the device is back" "$(wait "$writer" || echo $?)" 137

say "a mounted filesystem whose device dies"
dm_error vol
echo y >/mnt/a/g || true
expect_text "sync" "$(sync -f /mnt/a 2>&1 || true)" "Input/output error"
must umount /mnt/a
dm_remove vol
must losetup -d "$loop"
say "up for $(now) s"
