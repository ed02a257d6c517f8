import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/**
 * Preloaded into a server or worker: writes the CPU time of each long turn of its event loop, in milliseconds, a line
 * each. Unlike the response time of a request, it does not include waiting for a core.
 */
const { BENCH_TURNS_FOLDER: folder } = process.env;
const minRecordedMs = 5;

if (isMainThread && folder !== undefined) {
  let before = process.threadCpuUsage();
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    const ms = (user + system) / 1_000;
    if (ms >= minRecordedMs) appendFileSync(`${folder}/${String(process.pid)}.turns`, `${ms.toFixed(1)}\n`);
    before = process.threadCpuUsage();
  }, 1).unref();
}
