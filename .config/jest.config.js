import { join } from 'node:path';

// Six projects, by the suffix of a test file. The global set-up starts the real servers that .int, .fault and .e2e
// tests run against, once for a run. .unit and .replay tests need none.

// Absolute, because Jest resolves a relative root differently for the whole and for its projects.
const rootDir = join(import.meta.dirname, '..');

// Per project, so that a run of the other projects starts no servers.
const servers = {
  globalSetup: '<rootDir>/test/setup/start_servers.ts',
  globalTeardown: '<rootDir>/test/setup/stop_servers.ts',
};

const project = (name, suffix, setUp = {}) => ({
  displayName: name,
  ...setUp,
  rootDir,
  testEnvironment: '<rootDir>/.config/jest_environment.cjs',
  testRunner: '<rootDir>/.config/jest_runner.cjs',
  testMatch: [`<rootDir>/{test,src/dialect/test}/**/*.${suffix}.ts`],
  transform: { '\\.(ts|mts|js|mjs)$': '<rootDir>/.config/jest_transformer.cjs' },
  modulePathIgnorePatterns: ['<rootDir>/.exportd', '<rootDir>/.exportd-test', '<rootDir>/dist'],
});

export default {
  rootDir,
  projects: [
    project('unit', 'unit'),
    project('replay', 'replay'),
    project('int', 'int', servers),
    project('fault', 'fault', servers),
    project('e2e', 'e2e', servers),
    // An hour of faults, benchmarks, and cases whose kind another file tests. Only `npm run test:long` runs it.
    project('long', 'long', servers),
  ],
  testSequencer: '<rootDir>/.config/test_sequencer.js',
  // Generous, because a busy machine is no failure. A wait that fails reports sooner: see test/setup/wait_for.ts.
  testTimeout: 600_000,
  // A worker without open handles ends in a few milliseconds on a quiet machine, but in more than Jest's half a second on a
  // busy one, which Jest would report as a leak.
  workerGracefulExitTimeout: 20_000,
  // Three times the cores of CI: two or three of them wait, in .fault and .e2e tests (test_sequencer.js) and for locks, timers
  // and servers in .int tests, which on average use a third of a core each.
  maxWorkers: 6,
};
