# Programs of tests/integration, as they were built; sourced after lab.sh.
#   run_programs FOLDER/NAME[:FILTER]...   in the place that they were built for; a filter of GoogleTest

run_programs() {
  local project build program filter log from status failed=0
  project=$(cat /lab/project)
  build=$(cat /lab/build-path)
  mkdir -p "$(dirname "$build")" "$project"
  ln -s /lab/build "$build"
  ln -s /lab/examples "$project/examples"
  # Emulated code is thirty times slower: a share of the random sequences, always the same.
  export VOLUMED_SEED=1165684726 VOLUMED_SEQUENCES=200
  modprobe -a loop fuse
  for program in "$@"; do
    filter='*'
    [[ $program != *:* ]] || filter=${program#*:}
    program=${program%%:*}
    log=/lab/out/$(basename "$program").log
    from=$(now)
    status=0
    "$build/tests/integration/$program" --gtest_filter="$filter" >"$log" 2>&1 || status=$?
    echo "$program: exit $status after $(since "$from") s," \
      "$(grep -oE '\[  (PASSED|SKIPPED|FAILED)  ?\] [0-9]+ test' "$log" | tr -s '[] \n' ' ')"
    grep -oE 'skipped: .*' "$log" | sort | uniq -c || true
    ((status != 0)) || continue
    failed=$((failed + 1))
    grep -E '(\[  FAILED  \]|Failure$|Actual|Expected|Which is)' "$log" | head -n 12 || true
  done
  expect "programs that failed on $(uname -r)" $failed 0
  say "up for $(now) s"
}
