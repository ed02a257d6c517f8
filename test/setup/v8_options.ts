import { effort } from './effort.ts';

/**
 * V8 in processes that tests start. Without helper threads, as in those of Jest (test_command/checks.ts): all cores are busy, so
 * that helpers only add to the work. With room for what a process loads when it starts: it collected its heap a dozen times
 * meanwhile. In `npm run test:long` they are as in an installation.
 */
export const v8OfTests: readonly string[] =
  effort > 1
    ? []
    : [
        '--single-threaded-gc',
        '--no-concurrent-recompilation',
        '--min-semi-space-size=16',
        '--initial-heap-size=200',
      ];
