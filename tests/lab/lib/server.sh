# A second machine for servers: a network namespace behind a cable; sourced after lab.sh.
# Servers in it die, or are cut off, as real ones do: no answer comes, not even a refusal.
#   server_up             once, before the servers: $server_address is theirs, $node_address ours
#   server_cut            pulls the cable
#   server_join           puts it back
#   on_server COMMAND...
server_address=10.77.0.2
node_address=10.77.0.1
on_server() { ip netns exec server "$@"; }
server_up() {
  must modprobe veth
  must ip link set lo up
  must ip netns add server
  must ip link add cable type veth peer name cable netns server
  must ip address add $node_address/24 dev cable
  must ip link set cable up
  must on_server ip address add $server_address/24 dev cable
  must on_server ip link set cable up
  must on_server ip link set lo up
  must wait_until 10 ping_server
}
# The carrier is there when both ends are up.
ping_server() { [[ $(cat /sys/class/net/cable/operstate) == up ]]; }
server_cut() { must ip link set cable down; }
server_join() {
  must ip link set cable up
  must wait_until 10 ping_server
}
