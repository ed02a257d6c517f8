import { join } from 'node:path';

// Four projects by cost, told apart by a test file's suffix. Everything but .unit runs against real servers,
// which the global set-up starts once for the whole run.
// Jest resolves a relative root differently for the whole and for its projects.
const rootDir = join(import.meta.dirname, '..');

const transform = {
  '^.+\\.(ts|mts|js|mjs)$': [
    '@swc/jest',
    {
      // The repository's own options and no others: a stray .swcrc would also be picked up by Temporal's bundler.
      swcrc: false,
      jsc: { target: 'es2024', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
      sourceMaps: 'inline',
    },
  ],
};

// Packages published as ES modules only, which Jest has to translate.
const moduleOnly = [
  'uuid',
  'commander',
  'cookie',
  'node-pg-migrate',
  'glob',
  'minimatch',
  'brace-expansion',
  'balanced-match',
  'yargs',
  'hyparquet',
  'hyparquet-compressors',
  'hysnappy',
  'hyparquet-writer',
];

// Jest asks a proxy for every global that code in its sandbox names, which makes loops over many rows many times slower.
// Not those that fake timers replace, nor Buffer, which packages declare again.
const sandboxInjectedGlobals = [
  'Array',
  'BigInt',
  'Error',
  'JSON',
  'Map',
  'Math',
  'Number',
  'Object',
  'Promise',
  'Set',
  'String',
  'Symbol',
  'Uint8Array',
];

// In the projects, not above them, so that a run of the others alone starts no servers.
const servers = {
  globalSetup: '<rootDir>/test/setup/start_servers.ts',
  globalTeardown: '<rootDir>/test/setup/stop_servers.ts',
};

const project = (name, suffix, setUp = {}) => ({
  displayName: name,
  ...setUp,
  rootDir,
  testEnvironment: 'node',
  testMatch: [`<rootDir>/test/**/*.${suffix}.ts`],
  transform,
  transformIgnorePatterns: [`/node_modules/(?!(${moduleOnly.join('|')})/)`],
  modulePathIgnorePatterns: ['<rootDir>/.exportd', '<rootDir>/.exportd-test'],
  sandboxInjectedGlobals,
});

export default {
  rootDir,
  projects: [
    project('unit', 'unit'),
    project('replay', 'replay'),
    project('int', 'int', servers),
    project('fault', 'fault', servers),
    project('e2e', 'e2e', servers),
  ],
  // Long beyond need: a busy machine is no failure. What a test waits for says so much sooner, by test/setup/until.ts.
  testTimeout: 600_000,
  maxWorkers: 2,
};
