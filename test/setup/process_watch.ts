import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect } from '@jest/globals';

/** What a process did while it was watched. */
export interface Watched<Result> {
  readonly result: Result;
  /**
   * The longest time that its health took to respond, in milliseconds, less the time for which its main thread, or one that
   * this waits for, was ready to run and other processes of the machine had the cores. At least what its main thread computed
   * meanwhile. So a busy machine lengthens it no more than it lengthens work.
   */
  readonly silentMs: number;
  /** By how much its resident memory exceeded what it had before, at its peak, in MiB. */
  readonly grownMiB: number;
}

/** A process that is watched. */
interface WatchedProcess {
  /** Of its health, whose response names the process. */
  readonly url: string;
  /** The longest silence that is borne. */
  readonly maxSilentMs: number;
  /** Of so many rounds, the best one counts: what others do on the machine lengthens a silence, and nothing shortens it. */
  readonly rounds: number;
}

/** A server, which has a response for everybody at any time. */
export const serverAt = (baseUrl: string): WatchedProcess => ({
  url: `${baseUrl}/healthz`,
  maxSilentMs: 200,
  rounds: 3,
});

/** A worker, whose health only a probe reads. It may be busy with a response of an S3 server. */
export const workerAt = (port: number): WatchedProcess => ({
  url: `http://127.0.0.1:${port}/livez`,
  maxSilentMs: 1_000,
  rounds: 1,
});

/** The memory that a hostile client or S3 server may cost: a worker has 2 to 4 GiB, for all tenants. */
const maxGrownMiB = 300;

/**
 * Polls the health of a server or worker process, and its memory, while `action` runs. The test's own thread measures
 * neither.
 */
export async function watchProcess<Result>(
  { url }: WatchedProcess,
  action: () => Promise<Result>,
): Promise<Watched<Result>> {
  const thread = new Worker(join(import.meta.dirname, 'process_watch_thread.ts'), { workerData: { url } });
  const failure = new Promise<never>((_resolve, reject) => {
    thread.once('error', reject);
  });
  failure.catch(() => undefined);
  try {
    await Promise.race([once(thread, 'message'), failure]);
    const result = await Promise.race([action(), failure]);
    const watched = once(thread, 'message');
    thread.postMessage('stop');
    const [{ silentMs, grownMiB }] = (await watched) as [Omit<Watched<Result>, 'result'>];
    return { result, silentMs, grownMiB };
  } finally {
    await thread.terminate();
  }
}

/** Fails unless a process stayed responsive, and its memory grew by a bounded amount. */
export function expectWithinLimits(
  { maxSilentMs }: WatchedProcess,
  { silentMs, grownMiB }: Watched<unknown>,
): void {
  expect({
    silentMs: silentMs <= maxSilentMs || silentMs,
    grownMiB: grownMiB <= maxGrownMiB || grownMiB,
  }).toEqual({ silentMs: true, grownMiB: true });
}

/**
 * Does something within the limits of a process, and again while the process was silent for too long. Its memory grows by a
 * bounded amount in each round.
 */
export async function expectBorne<Result>(
  process: WatchedProcess,
  action: () => Promise<Result>,
): Promise<Result> {
  for (let round = 1; ; round += 1) {
    const watched = await watchProcess(process, action);
    const isLast = round === process.rounds || watched.silentMs <= process.maxSilentMs;
    expectWithinLimits(process, isLast ? watched : { ...watched, silentMs: 0 });
    if (isLast) return watched.result;
  }
}
