# csi-sanity on volumes that are thin logical volumes, with filesystems: each of its cases of snapshots passes, and nothing is left.
# needs: product csi-sanity
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/sanity.sh
sanity_lvm mount snapshots
