import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** What a server did while it was watched. */
interface Watched<Result> {
  readonly result: Result;
  /** The longest time that `/healthz` took to respond, in milliseconds. */
  readonly silentMs: number;
  /** How much its resident memory grew at most, in MiB. */
  readonly grownMiB: number;
}

/**
 * The longest silence of `/healthz` beside a hostile request. On an idle machine it stays under 200 ms. Where other tests use
 * both cores, each turn of the server takes ten times as long. What this catches took 5 to 75 seconds.
 */
export const maxSilentMs = 2_500;
/** The memory that one hostile client may cost. */
export const maxGrownMiB = 300;

/** Polls `/healthz` of a server process, and its memory, while `action` runs. Neither is measured by the test's own thread. */
export async function watchServer<Result>(
  url: string,
  action: () => Promise<Result>,
): Promise<Watched<Result>> {
  const thread = new Worker(join(import.meta.dirname, 'server_watch_thread.ts'), { workerData: { url } });
  await once(thread, 'message');
  try {
    const result = await action();
    const watched = once(thread, 'message');
    thread.postMessage('stop');
    const [{ silentMs, grownMiB }] = (await watched) as [Omit<Watched<Result>, 'result'>];
    return { result, silentMs, grownMiB };
  } finally {
    await thread.terminate();
  }
}
