#!/usr/bin/env bash
# Rank every night, and launch only what the gate passes. Run it in the folder that keeps the counts and the policies:
#
#   nightly.sh [DAY]    DAY is the last whole day of the log, such as 2026-11-15; default: yesterday, in UTC
#
#   logs/DAY/*.parquet  what users saw and clicked, one folder per day; read, never written
#   counts/             the counts of each day
#   policies/DAY/       the policy that DAY decided about; after a launch also lists.jsonl, which is served
#   live                link to the policies/DAY that was launched last; what serves reads live/lists.jsonl
#   verify.prom         promised against earned, for Prometheus
#
# Exit code 0: launched, or the gate did not pass and production keeps its lists; the last line says which.
# 1: the live lists earn less than promised, and nothing was launched. Above 1: a command failed; the live lists stay.
# The same day can be run again at any time. Do not run two at once; the crontab takes a lock.
set -euo pipefail

day=${1:-$(date -u -d yesterday +%F)}
before=$(date -u -d "$day - 1 day" +%F)
columns=(--context context --items items --clicks clicks) # adapt: what the log calls them; see prudent count --help

# Run a command that decides. 0 is yes and 1 is no; any other exit code is an error, and ends the night with it.
decides() {
  local code=0
  "$@" || code=$?
  if ((code > 1)); then exit "$code"; fi
  return "$code"
}

# 1. Count the day. Counting it again replaces it.
prudent count "logs/$day/*.parquet" -o counts --day "$day" "${columns[@]}"
prudent compact counts --before 120d # older days become one file; they cannot be counted again

# 2. A day that a launch has already followed, counted again because late data came: the live lists stay.
launched=
if [[ -e live ]]; then launched=$(basename "$(readlink live)"); fi
if [[ -n $launched && ! $day > $launched ]]; then
  echo "The lists of $launched are live; $day was only counted."
  exit 0
fi

# 3. Whether the live lists earn what they promised, on all days since their launch.
if [[ -n $launched ]]; then
  since=()
  for folder in logs/*/; do
    if [[ $(basename "$folder") > $launched && ! $(basename "$folder") > $day ]]; then
      since+=(--log "$folder*.parquet")
    fi
  done
  if ! decides prudent verify live/policy.parquet "${since[@]}" -o verify.prom "${columns[@]}"; then
    echo "The live lists of $launched do not keep their promise: nothing is launched until somebody looks." >&2
    exit 1
  fi
fi

# 4. Rank on the days before, so that this day is a holdout.
if [[ $(ls counts) == "day=$day" ]]; then
  echo "This is the first day: there is no holdout before the second."
  exit 0
fi
mkdir -p "policies/$day"
prudent rank counts -o "policies/$day/policy.parquet" --until "$before" --since 90d --half-life 14d

# 5. Launch where the gate passes. `live` changes in one step, after everything else is written.
if decides prudent gate "policies/$day/policy.parquet" --log "logs/$day/*.parquet" --min-lift 0 "${columns[@]}"; then
  prudent export "policies/$day/policy.parquet" -o "policies/$day/lists.jsonl" # adapt: --format redis, sql, ...
  ln -sfn "policies/$day" live.new
  mv -fT live.new live
  echo "The lists of $day are live."
else
  echo "Production keeps its lists."
fi
