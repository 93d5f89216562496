# Words of the demo's steps (tests/lab/demo/NN-NAME.sh), which are sourced one after the other by
# tests/demo.sh, after lab.sh and volumed.sh. What a step shows is also checked: `must`, `expect`.
#   title TEXT
#   show COMMAND...        prints the command as one would type it, and what it says
#   show_yaml NAME         stdin is a manifest: prints it, and gives it to volumed under that name
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
