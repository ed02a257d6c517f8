// Node 20 copies what may not be transferred, and does not say so. esbuild puts this module in place of
// node:worker_threads.
import workerThreads from 'node:worker_threads';

export * from 'node:worker_threads';

export const isMarkedAsUntransferable =
  'isMarkedAsUntransferable' in workerThreads ? workerThreads.isMarkedAsUntransferable : () => false;
