# A volume that is a directory of a pool, on an xfs whose project quotas bound it, under the shipped
# unit: its limit, account, growth in use and quotaBytes, a snapshot, a volume of it, deletion. The
# agent is killed in between, and no project is left in the end.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/pool.sh
. /lab/lib/csi.sh
. /lab/lib/directories.sh
directories_pool xfs
directories_limit xfs
directories_growth xfs
directories_quota xfs
directories_snapshot xfs
directories_end xfs
