# Words of the demo's steps (tests/lab/demo/NN-NAME.sh), which are sourced one after the other by
# tests/demo.sh, after lab.sh and volumed.sh. What a step shows is also checked: `must`, `expect`.
#   title TEXT
#   show COMMAND...        prints the command as one would type it, and what it says
#   show_yaml NAME         stdin is a manifest: prints it, and gives it to volumed under that name
#   has_plugin POD PLUGIN  false, and a line that says so, if volumed has no plugin for a pod's volume
title() { printf '\n# %s\n' "$*"; }
show() {
  printf '\n$ %s\n' "$*"
  "$@" || fail "$*: exit $?"
}
show_yaml() {
  local text
  text=$(cat)
  printf '\n$ cat >/etc/volumed/manifests/%s.yaml\n' "$1"
  sed 's/^/  /' <<<"$text"
  manifest "$1" <<<"$text"
}
has_plugin() {
  must wait_until 20 volumectl get pods "$1"
  explains "$1" "no volume plugin matched" || return 0
  echo "skipped: needs the plugin $2 in this build of volumed"
  rm "/etc/volumed/manifests/$1.yaml"
  wait_gone "$1"
  return 1
}
