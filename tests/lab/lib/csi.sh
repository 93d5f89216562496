# The agent's CSI driver, called at its socket by curl; sourced after volumed.sh. Messages are written as hex digits.
#   csi_text FIELD TEXT            a string of a message
#   csi_message FIELD HEX          a message within another
#   csi_number FIELD HEX           a number, as protobuf has it
#   csi_mount MODE                 a VolumeCapability: a filesystem, with the number of its access mode
#   csi_call SERVICE METHOD HEX    prints the code of the answer, which is in $lab_state/csi-body
#   csi_is WHAT CODE SERVICE METHOD HEX    a claim about that code
#   csi_volume                     the id of a volume that the last answer has
csi_socket=/run/volumed/csi.sock
csi_length() { if (($1 < 128)); then printf %02x "$1"; else printf '%02x%02x' $(($1 & 127 | 128)) $(($1 >> 7)); fi; }
csi_message() { printf '%02x%s%s' $(($1 << 3 | 2)) "$(csi_length $((${#2} / 2)))" "$2"; }
csi_text() { csi_message "$1" "$(printf %s "$2" | od -An -v -tx1 | tr -d ' \n')"; }
csi_number() { printf '%02x%s' $(($1 << 3)) "$2"; }
csi_mount() {
  csi_message 2 ""
  csi_message 3 "$(csi_number 1 "0$1")"
}
csi_call() {
  printf '%b' "$(printf '00%08x%s' $((${#3} / 2)) "$3" | sed 's/../\\x&/g')" >$lab_state/csi-request
  curl -sS -m 300 --http2-prior-knowledge --unix-socket $csi_socket -H 'content-type: application/grpc' \
    -H 'te: trailers' -D $lab_state/csi-answer -o $lab_state/csi-body --data-binary @$lab_state/csi-request \
    "http://localhost/csi.v1.$1/$2"
  tr -d '\r' <$lab_state/csi-answer | awk '$1 == "grpc-status:" { print $2 }'
}
csi_is() {
  local code
  code=$(csi_call "$3" "$4" "$5")
  [[ $code == "$2" ]] || fail "$1: $4 is answered with $code, and not with $2: $(grep -i grpc-message $lab_state/csi-answer || true)"
  echo "ok: $1: $4 is answered with $code"
}
csi_volume() { grep -aom1 'v-[0-9a-f]\{8\}-[0-9a-f]\{24\}' $lab_state/csi-body; }
