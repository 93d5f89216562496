# A second machine for servers: a network namespace behind a cable; sourced after lab.sh.
# Servers in it die, or are cut off, as real ones do: no answer comes, not even a refusal.
#   server_up             once, before the servers: $server_address is theirs, $node_address ours
#   server_cable NAME NODE_ADDRESS SERVER_ADDRESS   one more cable, with addresses of its own
#   server_cut [CABLE]    pulls the cable
#   server_join [CABLE]   puts it back
#   on_server COMMAND...
server_address=10.77.0.2
node_address=10.77.0.1
on_server() { ip netns exec server "$@"; }
server_up() {
  must modprobe veth
  must ip link set lo up
  must ip netns add server
  must on_server ip link set lo up
  server_cable cable $node_address $server_address
}
server_cable() {
  must ip link add "$1" type veth peer name "$1" netns server
  must ip address add "$2/24" dev "$1"
  must ip link set "$1" up
  must on_server ip address add "$3/24" dev "$1"
  must on_server ip link set "$1" up
  must wait_until 10 server_carrier "$1"
}
# The carrier is there when both ends are up.
server_carrier() { [[ $(cat "/sys/class/net/$1/operstate") == up ]]; }
server_cut() { must ip link set "${1:-cable}" down; }
server_join() {
  must ip link set "${1:-cable}" up
  must wait_until 10 server_carrier "${1:-cable}"
}
