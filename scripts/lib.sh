# Shared by the scripts of this folder; sourced, from the top of the project.
# Objects of one checkout serve another: a clean clone finds what an earlier one compiled.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Tools that scripts/bootstrap has unpacked, not installed.
export PATH=$PWD/build/tools:$PATH

# Sets `processor` to what this shell and the children that it has waited for have used, in hundredths of a second.
read_processor() {
  local -a stat
  read -ra stat </proc/self/stat
  processor=$((stat[13] + stat[14] + stat[15] + stat[16]))
}

# stage NAME COMMAND...: runs the command and prints how many seconds it took, and how many of a processor:
# the latter say what it costs on a machine that others use too.
stage() {
  local name=$1 start=$SECONDS status=0 processor before
  shift
  echo "==> $name"
  read_processor
  before=$processor
  "$@" || status=$?
  read_processor
  mkdir -p build
  echo "==> $name: $((SECONDS - start)) s, $(((processor - before) / 100)) s of processor (exit $status)" | tee -a build/stages
  return "$status"
}

# report_progress LOG: says every 15 seconds how far ninja is by its log, as long as this shell lives.
report_progress() {
  while sleep 15 >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null; do
    tail -n 1 "$1" | sed -nE 's/^\[([0-9]+)\/([0-9]+)\].*/    \1 of \2 steps/p'
  done
}

# build_preset PRESET [TARGET...]: configures once, builds; the log is shown when it fails.
build_preset() {
  local preset=$1 log=build/$1.log status=0 reporter
  shift
  mkdir -p build
  if [[ ! -f build/$preset/build.ninja ]]; then
    cmake --preset "$preset" >"$log" 2>&1 || { tail -n 60 "$log"; return 1; }
  fi
  report_progress "$log" &
  reporter=$!
  ninja -C "build/$preset" "$@" >"$log" 2>&1 || status=1
  { kill "$reporter" && wait "$reporter" || true; } 2>/dev/null
  ((status == 0)) || { grep -E -A12 'error|FAILED' "$log" | head -n 120; return 1; }
}

# run_tidy [FILE...]: clang-tidy over files of src/, or over all of it. Of a build it needs only what that generates.
run_tidy() {
  local log=build/clang.log
  [[ -f build/clang/build.ninja ]] || cmake --preset clang >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  ninja -C build/clang generated >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  python3 scripts/clang_tidy_each.py build/clang "$@"
}

# run_tests BUILD_DIR LABELS LOG [CTEST ARGUMENTS...]
# Two programs for each processor, or one that computes all the time (PROCESSORS in cmake/library.cmake): each has
# directories, sockets, mounts and a root of its own.
run_tests() {
  local dir=$1 labels=$2 log=$3 status=0
  shift 3
  : >"$log"
  ctest --test-dir "$dir" --output-on-failure --no-tests=error -V -L "$labels" -j "$((2 * $(nproc)))" "$@" >>"$log" 2>&1 ||
    status=1
  ((status != 0)) || return 0
  # What every test says is left out: its name may hold any of these words.
  grep -vE '\[ +(RUN|OK|SKIPPED|PASSED) +\]|\[-+\]| 0 violations' "$log" |
    grep -E '(\[  FAILED  \]|Failure$|\*\*\*(Failed|Timeout|Exception)|Actual|Expected|Which is|^[0-9]+: .*(error|ERROR|SUMMARY|violation))' |
    head -n 150
  # What a sanitizer says of a program that it ended.
  grep -hE -A 24 '(ERROR: [A-Z][a-z]+Sanitizer|WARNING: ThreadSanitizer)' "$log" | head -n 80
  return 1
}

# print_failed LOG...: the names of what failed, once each, and of the programs that they are in: the
# last thing that a run says, for whoever reads its end alone.
print_failed() {
  local log
  for log in "$@"; do
    [[ -f $log ]] || continue
    grep -oE '\[  FAILED  \] [A-Za-z0-9_]+[./][^ ,]+|[a-z_0-9]+ \.+ *\*\*\*(Failed|Timeout|Exception).*' "$log" |
      sort -u | sed "s|^|failed in $log: |"
    grep -hoE '(ERROR: [A-Z][a-z]+Sanitizer|WARNING: ThreadSanitizer).*' "$log" | sort -u | head -n 5
  done
}

# print_skips LOG...: one line for each reason that something was skipped for.
print_skips() {
  grep -ohE 'skipped: needs .*' "$@" | sort | uniq -c | sed 's/^ */  /' || true
}

# print_proofs LOG: what the proofs of CSI took: all programs of CSI's own, those with real drivers among them, each
# by CTest's clock, which goes on while others have the processors. That it is too much is said, and fails nothing.
print_proofs() {
  awk -v limit=600 '
    match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (csi_|pd_)[^ ]+ .* sec *$/) { programs += 1; took += $(NF - 1) }
    END {
      if (programs == 0) exit
      printf "bounded proofs of CSI: %d programs, %.0f s (limit %d s on two processors)\n", programs, took, limit
      if (took > limit) printf "warning: the bounded proofs of CSI take %.0f s more than they may\n", took - limit
    }' "$@"
}

# print_totals LOG...: the sum over all GoogleTest programs, and over what scripts/peers did not build, as the last line.
print_totals() {
  awk '
    match($0, /\[  PASSED  \] [0-9]+ test/) { split(substr($0, RSTART), f, " "); passed += f[4] }
    match($0, /\[  SKIPPED \] [0-9]+ test/) { split(substr($0, RSTART), f, " "); skipped += f[4] }
    match($0, /\[  FAILED  \] [0-9]+ test.*listed below/) { split(substr($0, RSTART), f, " "); failed += f[4] }
    /\*\*\*(Failed|Timeout|Exception)/ { broken += 1 }
    /^skipped: needs peer / { skipped += 1 }
    END {
      if (broken > 0 && failed == 0) failed = broken
      printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    }' "$@"
}
