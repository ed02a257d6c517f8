#!/bin/sh
# Measures the figures of test/bench/README.md, saves them beside this file and prints the tables. The machine must be quiet.
set -e
cd "$(dirname "$0")/../../.."
figures=$PWD/test/bench/figures
npm run bench -- --formats JSONLines+gzip,JSONLines+zstd,Parquet+zstd --repeat 5 \
  --save "$figures/formats.json"
npm run bench -- --events 10000000 --formats JSONLines+gzip,Parquet+zstd --no-pipeline --no-duckdb --no-peers \
  --verify fast --save "$figures/formats_10_million.json"
npx oxfmt --config .config/oxfmt.json "$figures"
