import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
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

/** What a thread has done so far, in milliseconds. */
interface ThreadTimes {
  /** With a core. */
  readonly ran: number;
  /** Ready to run, while others had the cores. */
  readonly waited: number;
}

function timesOf(thread: string): ThreadTimes {
  const [ran = 0, waited = 0] = readFileSync(`/proc/${thread}/schedstat`, 'utf8')
    .split(' ')
    .map((nanoseconds) => Number(nanoseconds) / 1_000_000);
  return { ran, waited };
}

/** The times of this thread and of those of the process, by their paths. */
function timesOfThreads(): ReadonlyMap<string, ThreadTimes> {
  const threads = readdirSync(`/proc/${pid}/task`).map((id) => `${pid}/task/${id}`);
  const times = new Map<string, ThreadTimes>();
  for (const thread of ['thread-self', ...threads])
    try {
      times.set(thread, timesOf(thread));
    } catch {
      // It has ended.
    }
  return times;
}

// The kernel forgets the peak so far.
writeFileSync(`/proc/${pid}/clear_refs`, '5');
const startMiB = memoryMiB('VmRSS');
let silentMs = 0;
let isStopping = false;
parentPort?.once('message', () => (isStopping = true));
parentPort?.postMessage('started');

async function poll(): Promise<void> {
  const before = timesOfThreads();
  const startedAt = performance.now();
  await request();
  const elapsedMs = performance.now() - startedAt;
  const main = `${pid}/task/${pid}`;
  let ran = 0;
  let waited = 0;
  let othersWaited = 0;
  for (const [thread, after] of timesOfThreads()) {
    const since = before.get(thread) ?? { ran: 0, waited: 0 };
    if (thread === main) {
      ran = after.ran - since.ran;
      waited = after.waited - since.waited;
    } else othersWaited = Math.max(othersWaited, after.waited - since.waited);
  }
  // The main thread also waits for others: for those of V8 that collect garbage with it, and for the measuring one. They
  // may wait at the same time, so only the longest wait is taken off, and nothing of what the main thread computed.
  silentMs = Math.max(silentMs, ran, elapsedMs - waited - othersWaited);
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
