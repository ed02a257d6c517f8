import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

// Its own thread, so that what the test does delays no measurement.

const { url } = workerData as { readonly url: string };
const pollIntervalMs = 20;

const request = (): Promise<string> =>
  new Promise((resolve, reject) => {
    // A connection of its own: the process may close one that it keeps, when both are slow.
    get(url, { agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });

const { pid } = JSON.parse(await request()) as { pid: number };

function memoryMiB(field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
}

/** For how long a thread has been ready to run without a core, in milliseconds. */
const waitedMs = (thread: string): number =>
  Number(readFileSync(`/proc/${thread}/schedstat`, 'utf8').split(' ')[1]) / 1_000_000;

// The kernel forgets the peak so far.
writeFileSync(`/proc/${pid}/clear_refs`, '5');
const startMiB = memoryMiB('VmRSS');
let silentMs = 0;
let isStopping = false;
parentPort?.once('message', () => (isStopping = true));
parentPort?.postMessage('started');

async function poll(): Promise<void> {
  const startedAt = performance.now();
  const waitedBefore = [waitedMs(`${pid}/task/${pid}`), waitedMs('thread-self')] as const;
  await request();
  const waited = [waitedMs(`${pid}/task/${pid}`), waitedMs('thread-self')] as const;
  const elapsedMs = performance.now() - startedAt;
  // They may wait at the same time, so only the longer wait is taken off.
  const machineMs = Math.max(waited[0] - waitedBefore[0], waited[1] - waitedBefore[1]);
  silentMs = Math.max(silentMs, elapsedMs - machineMs);
}

const isWatching = (): boolean => !isStopping;
while (isWatching()) {
  await poll();
  await delay(pollIntervalMs);
}
// The process may still be busy when the action has ended.
await poll();
parentPort?.postMessage({
  silentMs: Math.round(silentMs),
  grownMiB: Math.round(memoryMiB('VmHWM') - startMiB),
});
