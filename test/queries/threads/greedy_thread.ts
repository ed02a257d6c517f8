import { parentPort } from 'node:worker_threads';

/** A thread that needs more and more memory. */
parentPort?.on('message', () => {
  const kept: object[] = [];
  for (;;) kept.push({ value: kept.length });
});
