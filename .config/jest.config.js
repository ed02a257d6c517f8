import { join } from 'node:path';

// Six projects, by the suffix of a test file. The global set-up starts the real servers that .int, .fault and .e2e
// tests run against, once for a run. .unit and .replay tests need none.

// Absolute, because Jest resolves a relative root differently for the whole and for its projects.
const rootDir = join(import.meta.dirname, '..');

const transform = {
  '^.+\\.(ts|mts|js|mjs)$': [
    '@swc/jest',
    {
      // No .swcrc: Temporal's bundler would read it too.
      swcrc: false,
      jsc: { target: 'es2024', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
      sourceMaps: 'inline',
    },
  ],
};

// Packages that are published as ES modules only. Jest has to transform them.
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

// Without this, each use of a global in Jest's sandbox goes through a proxy, and loops over rows are many times slower.
// Left out: globals that fake timers replace, and Buffer, which packages declare again.
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

// Per project, so that a run of the other projects starts no servers.
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
    // An hour of faults. Only `npm run test:long` runs it.
    project('long', 'long', servers),
  ],
  testSequencer: '<rootDir>/.config/longest_first.js',
  // Generous, because a busy machine is no failure. A wait that fails reports sooner: see test/setup/wait_for.ts.
  testTimeout: 600_000,
  // More than the two cores of CI: .fault and .e2e tests wait for most of their time.
  maxWorkers: 3,
};
