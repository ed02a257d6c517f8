import { parentPort } from 'node:worker_threads';

interface Link {
  readonly next: Link | null;
}

/** A thread that needs more and more memory, in small amounts: Node ends the process if a single large one does not fit. */
parentPort?.on('message', () => {
  let kept: Link | null = null;
  for (;;) kept = { next: kept };
});
