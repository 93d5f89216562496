# An NFS server that stops, starts again and is cut off; the library's own test.
# needs: nothing
. /lab/lib/lab.sh
. /lab/lib/server.sh
. /lab/lib/nfs.sh
server_up
nfs_start
mkdir -p /mnt/soft /mnt/hard
must mount -t nfs4 -o vers=4.2,soft,timeo=10,retrans=1 $server_address:/srv/lab /mnt/soft
must mount -t nfs4 -o vers=4.2,nosharecache $server_address:/srv/lab /mnt/hard
echo hello >/mnt/hard/f
expect "seen by the other mount" "$(cat /mnt/soft/f)" hello

say "the cable is pulled"
server_cut
from=$(now)
if timeout 30 stat -f /mnt/soft >/dev/null 2>&1; then fail "statfs of the soft mount answers"; fi
say "a soft statfs failed after $(since "$from") s"
expect "statfs of the hard mount hangs, and can be killed" "$(timeout 3 stat -f /mnt/hard >/dev/null 2>&1 || echo $?)" 124
server_join
must timeout 30 stat -f /mnt/hard
expect "its content" "$(cat /mnt/hard/f)" hello

say "the server stops and starts again"
nfs_stop
expect "statfs of the hard mount hangs" "$(timeout 3 stat -f /mnt/hard >/dev/null 2>&1 || echo $?)" 124
nfs_restart
must timeout 60 stat -f /mnt/hard
must umount /mnt/hard
must umount /mnt/soft
say "up for $(now) s"
