import { effort } from './effort.ts';

/**
 * V8 without helper threads, for processes of exportd that tests start, as in those of Jest (test_command/checks.ts): all cores
 * are busy, so that helpers only add to the work. In `npm run test:long` they are as in an installation.
 */
export const withoutHelpers: readonly string[] =
  effort > 1 ? [] : ['--single-threaded-gc', '--no-concurrent-recompilation'];
