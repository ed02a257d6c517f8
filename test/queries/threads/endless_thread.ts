import { parentPort } from 'node:worker_threads';

/** A thread whose computation never ends, as a query that is too expensive to compile. */
parentPort?.on('message', () => {
  for (;;);
});
