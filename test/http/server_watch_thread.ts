import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

// Its own thread, so that what the test does delays no measurement.

const { url } = workerData as { readonly url: string };
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const pollIntervalMs = 20;

const request = (): Promise<string> =>
  new Promise((resolve, reject) => {
    get(`${url}/healthz`, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });

function residentMiB(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) / 1_024;
}

const { pid } = JSON.parse(await request()) as { pid: number };
const startMiB = residentMiB(pid);
const watched = { silentMs: 0, grownMiB: 0 };
let isStopping = false;
parentPort?.once('message', () => (isStopping = true));
parentPort?.postMessage('started');

async function watch(): Promise<void> {
  const sentAt = performance.now();
  await request();
  watched.silentMs = Math.max(watched.silentMs, performance.now() - sentAt);
  watched.grownMiB = Math.max(watched.grownMiB, residentMiB(pid) - startMiB);
}

const isWatching = (): boolean => !isStopping;
while (isWatching()) {
  await watch();
  await delay(pollIntervalMs);
}
// The server may still be busy when the response has arrived.
await watch();
agent.destroy();
parentPort?.postMessage(watched);
