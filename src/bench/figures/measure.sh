#!/bin/sh
# Measures everything that src/bench/README.md shows, and draws it. The machine must be quiet.
set -e
cd "$(dirname "$0")/../../.."
figures=$PWD/src/bench/figures
npm run bench -- --repeat 5 --save "$figures/formats.json"
npm run bench -- --events 10000000 --formats JSONLines+gzip,JSONLines+zstd,Parquet+zstd --no-pipeline \
  --verify fast --save "$figures/formats_10_million.json"
npm run bench -- workers --save "$figures/workers.json"
npm run bench -- plot "$figures"
npx oxfmt --config .config/oxfmt.json "$figures"
