# Sourced by scripts/demo, which has started the daemon: persistent volumes on real loop devices.

loops=()

# new_disk FILE SIZE: prints the loop device of a new image, which reads as zeros.
new_disk() {
  truncate -s "$2" "$1"
  losetup --find --show "$1"
}

detach_disks() {
  local loop
  for loop in "${loops[@]}"; do losetup --detach "$loop"; done
  loops=()
}

demo_storage() {
  local ext4_disk xfs_disk used_disk raw_disk before writer reader shared raw
  ext4_disk=$(new_disk "$scratch/ext4.img" 64M) && loops+=("$ext4_disk")
  xfs_disk=$(new_disk "$scratch/xfs.img" 320M) && loops+=("$xfs_disk")
  used_disk=$(new_disk "$scratch/used.img" 64M) && loops+=("$used_disk")
  raw_disk=$(new_disk "$scratch/raw.img" 16M) && loops+=("$raw_disk")
  echo "accounts that nobody has a copy of" | dd of="$used_disk" bs=512 seek=9000 conv=fsync status=none
  before=$(sha256sum <"$used_disk")
  mkdir -p "$scratch/recycled"

  say "persistent volumes: two new disks, a directory, and a disk that is not blank"
  sed -e "s#EXT4_DISK#$ext4_disk#; s#XFS_DISK#$xfs_disk#; s#USED_DISK#$used_disk#; s#RAW_DISK#$raw_disk#" \
    -e "s#SCRATCH#$scratch/recycled#" examples/storage.yaml >"$scratch/storage.yaml"
  ctl apply -f "$scratch/storage.yaml"
  ctl wait writer --for ready --timeout 60
  ctl wait reader --for ready --timeout 60
  ctl get volumes
  ctl get pvc
  ctl get pv
  findmnt -rno SOURCE,TARGET,FSTYPE,OPTIONS | grep -F "$root/" | grep -E "ext4-disk|xfs-disk"

  writer=$root/pods/0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a1001/volumes
  reader=$root/pods/0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a1002/volumes
  shared=kubernetes.io~local-volume/ext4-disk
  echo "written by one pod" >"$writer/$shared/note"
  expect "the same disk in the other pod" "$(cat "$reader/$shared/note")" "written by one pod"
  if touch "$reader/$shared/x" 2>/dev/null; then fail "the read-only claim can be written"; fi
  echo "ok: the read-only claim cannot be written"
  expect "filesystem of the claim that asked for 200Mi" \
    "$(stat -fc %T "$writer/kubernetes.io~local-volume/xfs-disk")" xfs
  expect "its group" "$(stat -c %g "$writer/kubernetes.io~local-volume/xfs-disk")" 2000

  say "a raw block volume: the pod gets the device itself"
  ctl wait database --for ready --timeout 60
  ctl explain database
  ctl oci database main
  raw=$root/pods/0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a1004/volumeDevices/kubernetes.io~local-volume/raw-disk
  expect "the pod's link" "$(readlink "$raw")" "$raw_disk"
  echo "page one" | dd of="$raw" bs=512 seek=3 conv=notrunc,fsync status=none
  expect "written through the pod's path" "$(dd if="$raw_disk" bs=512 skip=3 count=1 status=none | head -c 8)" "page one"

  say "the xfs disk is enlarged, and its volume grows while the pod uses it"
  local xfs_place=$writer/kubernetes.io~local-volume/xfs-disk
  echo "written before it grew" >"$xfs_place/note"
  truncate -s 480M "$scratch/xfs.img"
  losetup --set-capacity "$xfs_disk"
  sed 's/300Mi/480Mi/' "$scratch/storage.yaml" | ctl apply -f - | { grep -v unchanged || true; }
  until_larger "$xfs_place" 400
  expect "its files" "$(cat "$xfs_place/note")" "written before it grew"
  for _ in $(seq 200); do
    ctl describe pod writer | grep -qF FileSystemResizeSuccessful && break
    sleep 0.05
  done
  ctl describe pod writer | grep -F FileSystemResizeSuccessful || fail "no event of the growth"

  say "the disk that is not blank is refused, and says why"
  until_text "is not formatted" ctl explain refused
  ctl explain refused
  expect "its content" "$(sha256sum <"$used_disk")" "$before"

  say "pods and claims go: disks are unmounted, the directory is recycled"
  echo "left behind" >"$scratch/recycled/old"
  local pod
  for pod in writer reader refused database; do ctl delete pod "$pod"; done
  for pod in writer reader refused database; do ctl wait "$pod" --for gone --timeout 30; done
  ctl delete persistentvolumeclaim scratch
  for _ in $(seq 200); do
    [[ -z $(ls -A "$scratch/recycled") ]] && break
    sleep 0.05
  done
  expect "files in the recycled directory" "$(find "$scratch/recycled" -mindepth 1 | wc -l)" 0
  ctl events pv/
  for _ in $(seq 200); do
    findmnt -rno TARGET | grep -qF "$root/plugins/" || break
    sleep 0.05
  done
  expect "disks still mounted" "$(findmnt -rno TARGET | grep -cF "$root/plugins/" || true)" 0
  detach_disks
}
