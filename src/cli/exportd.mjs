#!/usr/bin/env node
// The command `exportd`, for the Node of the machine: runs the build of a package, or else the sources of a clone.
import { existsSync } from 'node:fs';
import module from 'node:module';

const source = new URL('./main.ts', import.meta.url);
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

function fail(message) {
  process.stderr.write(`exportd: ${message}\n`);
  process.exit(1);
}

if (existsSync(source)) {
  if (major < 24)
    fail(
      `a clone runs on Node 24, found ${process.version}: run "npm ci", then call "npx exportd", which uses the Node that npm brings.`,
    );
  await import(source.href);
} else {
  if (major < 22 || (major === 22 && minor < 15))
    fail(`Node 22.15 or newer is required, found ${process.version}: see https://nodejs.org.`);
  // Stack traces name lines of the sources.
  process.setSourceMapsEnabled(true);
  module.enableCompileCache();
  await import(new URL('../../dist/src/cli/main.js', import.meta.url).href);
}
