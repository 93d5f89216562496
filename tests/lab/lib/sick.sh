# Local volumes on device-mapper devices that fail, are slow or hang; sourced after volumed.sh and dm.sh.
#   sick_disk NAME FSTYPE [MI]   a device /dev/mapper/NAME, its volume and claim NAME to stdout
#   sick_pod NAME, no_sick_pod NAME   the pod NAME comes, goes
#   sick_place NAME              where its volume is
#   metric NAME                  the sum of what /metrics has under names that begin so
#   counts NAME, counts_none NAME
#   goes_on WHEN                 the pod "good" writes, and is ready
sick_uid() { printf '66666666-0000-4000-8000-%012d' "$(cksum <<<"$1" | cut -c1-9)"; }
sick_disk() {
  local device
  device=$(plug virtio-scsi "$1" "${3:-96}")
  device=$(dm_make "$1" "$device")
  local_volume "$1" "$device" "$2"
}
sick_pod() { pod "$1" "$(sick_uid "$1")" "$1" | manifest "$1"; }
no_sick_pod() { rm "/etc/volumed/manifests/$1.yaml"; }
sick_place() { volume_path "$(sick_uid "$1")" "$1"; }
metric() { curl -sS http://127.0.0.1:9788/metrics | awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { print sum + 0 }'; }
counts() { (($(metric "$1") > 0)); }
counts_none() { (($(metric "$1") == 0)); }
goes_on() {
  echo "$1" >>"$(sick_place good)/note"
  must sync -f "$(sick_place good)"
  volumectl get pods good | grep -q Ready || fail "the good pod is not ready: $(volumectl explain good)"
  echo "ok: the good pod goes on, $1"
}
