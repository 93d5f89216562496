title "volumed as a service: installed, started by systemd when it is ready"
install_volumed
show systemctl start volumed
show volumectl status
show systemctl status --no-pager --lines=0 volumed
expect "the unit" "$(property ActiveState)/$(property SubState)" active/running
