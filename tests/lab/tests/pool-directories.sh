# A volume that is a directory of a pool, on an ext4 whose project quotas bound it, under the shipped
# unit: its limit, account, growth in use and quotaBytes, a snapshot, a volume of it, deletion. The
# agent is killed in between, and no project is left in the end. A pool on an ext4 without project
# quotas says what it lacks.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/pool.sh
. /lab/lib/csi.sh
. /lab/lib/directories.sh
mkdir -p /srv/plain
plain=$(plug virtio-blk pool-plain 64)
must mkfs.ext4 -q "$plain"
must mount "$plain" /srv/plain
directories_pool ext4 'plain: /srv/plain'

say "a pool on an ext4 that counts no projects"
{ pool_class plain plain backend directory; pool_claim plain plain 32; pool_pod plain; } | apply
must wait_until 30 explains plain "feature project"
volumectl delete pod plain
volumectl delete pvc plain
must wait_until 30 pool_is_empty plain  # what a try has made it takes away again

directories_limit ext4
directories_growth ext4
directories_quota ext4
directories_snapshot ext4
directories_end ext4
