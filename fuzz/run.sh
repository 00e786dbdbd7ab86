#!/bin/sh
# Fuzzes every parser, each for SECONDS (default 60), and fails on the first finding:
#
#   fuzz/run.sh [SECONDS] [TARGET...]
#
# It needs neither nightly nor cargo-fuzz: coverage instrumentation is available in stable rustc, and a sanitizer would
# find little in code that forbids `unsafe`. With cargo-fuzz, `cargo fuzz run --sanitizer none TARGET` is the same.
set -eu
cd "$(dirname "$0")"

seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=${*:-drive_toml array_toml workload_toml scenario_toml disksim_parv trace_any trace_each \
  trace_steps trace_parquet quantities result_json jobs_fio jobs_icf jobs_vdbench nbd}
host=$(rustc -vV | sed -n 's/^host: //p')
build=${CARGO_TARGET_DIR:-$PWD/target}

# The flags of cargo-fuzz. `--target` keeps them away from build scripts and procedural macros.
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 $passes" CARGO_TARGET_DIR=$build \
    cargo build --quiet --release --target "$host" --bins

for target in $targets; do
    # Whatever stands in the catalogue or is a sample is a seed too.
    case $target in
        drive_toml) catalogue=../catalogue/drives ;;
        array_toml) catalogue=../catalogue/arrays ;;
        workload_toml) catalogue=../catalogue/workloads ;;
        scenario_toml) catalogue=../catalogue/scenarios ;;
        trace_any) catalogue=../crates/trace/samples ;;
        *) catalogue= ;;
    esac
    mkdir -p "corpus/$target" "artifacts/$target"
    if [ "$target" = trace_each ]; then
        # Its first byte chooses the format: every sample as each of them.
        for sample in ../crates/trace/samples/*; do
            for choice in $(seq 0 31); do
                { printf "\\$(printf %o "$choice")"; cat "$sample"; } >"corpus/$target/$(basename "$sample").$choice"
            done
        done
    fi
    [ -d "seeds/$target" ] && catalogue="$catalogue seeds/$target"
    log=artifacts/$target/log.txt
    echo "$target: $seconds s"
    if ! "$build/$host/release/$target" "corpus/$target" $catalogue \
        -artifact_prefix="artifacts/$target/" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 >"$log" 2>&1; then
        input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        grep -A 3 'panicked at\|ERROR: libFuzzer' "$log" | head -n 12 >&2
        echo "$target: FAILED on fuzz/${input:-?}; the whole log is fuzz/$log" >&2
        exit 1
    fi
    sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "$log"
done
echo "no findings"
