#!/bin/sh
# Measures everything that src/bench/README.md shows, and draws it. The machine must be quiet.
set -e
cd "$(dirname "$0")/../../.."
figures=$PWD/src/bench/figures
npm run bench -- --formats JSONLines+gzip,JSONLines+zstd,Parquet+zstd --repeat 5 \
  --save "$figures/formats.json"
npm run bench -- --events 10000000 --formats JSONLines+gzip,Parquet+zstd --no-pipeline --no-duckdb \
  --verify fast --save "$figures/formats_10_million.json"
npm run bench -- workers --format Parquet+zstd --events 2800000 --ranges 32 --save "$figures/workers.json"
npm run bench -- plot "$figures"
npx oxfmt --config .config/oxfmt.json "$figures"
