# Local volumes that are made larger while something writes to them; sourced after volumed.sh.
#   grow_plug NAME KIND FSTYPE MI     a disk, remembered as volume NAME
#   grow_manifest NAME UID [MI]       the volume, its claim and the pod NAME; with a new capacity
#   grow_volume NAME MI               the manifests of the volume and its claim alone, to stdout
#   grow_fill NAME, grow_same NAME    random files with their sums; whether they are still so
#   grow_bytes NAME                   size of the mounted filesystem
#   grow_has NAME MI                  whether the filesystem has more than four fifths of that
#   writer_start NAME, writer_stop NAME   a process that appends lines, with fsync, until stopped
#   writer_lost NAME                  lines that the process was told are on the disk, and are not
# The pod of a volume has its name.
declare -A grow_type grow_uid grow_path grow_writer
grow_plug() {
  grow_type[$1]=$3
  grow_path[$1]=$(plug "$2" "$1" "$4")
}
grow_place() { volume_path "${grow_uid[$1]}" "$1"; }
grow_volume() { local_volume "$1" "${grow_path[$1]}" "${grow_type[$1]}" "$2"; }
grow_manifest() {
  grow_uid[$1]=$2
  { grow_volume "$1" "${3:-64}"; pod "$1" "$2" "$1"; } | manifest "$1"
}
grow_fill() {
  local place number
  place=$(grow_place "$1")
  mkdir -p "$place/files"
  for number in 1 2 3; do head -c 1M /dev/urandom >"$place/files/$number"; done
  sync -f "$place"
  (cd "$place/files" && sha256sum ./*) >"$lab_state/sums-$1"
}
grow_same() { (cd "$(grow_place "$1")/files" && sha256sum --quiet --check "$lab_state/sums-$1"); }
# By the shell: mawk prints no number past 2 GiB.
grow_bytes() {
  local blocks size
  read -r blocks size < <(stat -fc '%b %S' "$(grow_place "$1")")
  echo $((blocks * size))
}
grow_has() { (($(grow_bytes "$1") > ($2 << 20) * 4 / 5)); }
# What is acknowledged is written down elsewhere, after the disk has it.
writer_loop() {
  local place=$1 told=$2 line=0
  while :; do
    line=$((line + 1))
    echo $line | dd of="$place/lines" oflag=append conv=notrunc,fsync status=none
    echo $line >"$told"
    sleep 0.3
  done
}
writer_start() {
  writer_loop "$(grow_place "$1")" "$lab_state/told-$1" &
  grow_writer[$1]=$!
}
writer_stop() {
  kill "${grow_writer[$1]}"
  wait "${grow_writer[$1]}" 2>/dev/null || true
}
writer_lost() {
  local told
  told=$(cat "$lab_state/told-$1")
  ((told > 0)) || fail "the writer of $1 wrote nothing"
  awk -v told="$told" '$1 >= 1 && $1 <= told { seen[$1] = 1 }
    END { for (n = 1; n <= told; n++) if (!(n in seen)) lost++; print lost + 0 }' "$(grow_place "$1")/lines"
}
