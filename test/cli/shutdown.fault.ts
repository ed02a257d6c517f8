import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compileCacheOf } from '../../src/local_stack/compile_cache.ts';
import { startBlackholeServer, type BlackholeServer } from '../isolation/blackhole_server.ts';
import { casesOf } from '../setup/effort.ts';
import { fromSetUp } from '../setup/environment.ts';
import { v8OfTests } from '../setup/v8_options.ts';
import { waitFor } from '../setup/wait_for.ts';

const main = join(import.meta.dirname, '../../src/cli/main.ts');

let silent: BlackholeServer;
const children: ChildProcess[] = [];
beforeAll(async () => {
  silent = await startBlackholeServer();
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await silent.close();
});

/** Starts a process of exportd whose servers accept connections and never respond. */
function start(part: 'server' | 'worker') {
  const { host } = new URL(silent.endpoint);
  const child = spawn(process.execPath, [...v8OfTests, main, part], {
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: compileCacheOf(part),
      EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
      EXPORTD_TASK_QUEUE_PREFIX: `test-${randomUUID()}`,
      EXPORTD_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
      EXPORTD_PORT: '0',
      EXPORTD_CONTROL_CONNECT_TIMEOUT: '1s',
      // Longer than the process may take to end.
      EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '60s',
      DATABASE_URL: `postgres://exportd@${host}/exportd`,
      TEMPORAL_ADDRESS: host,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  children.push(child);
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  return {
    child,
    log: () => log,
    exited: once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
  };
}

describe.each(['server', 'worker'] as const)('SIGTERM ends the %s', (part) => {
  it('right after its start', async () => {
    const { child, exited } = start(part);
    child.kill('SIGTERM');
    const [code, signal] = await exited;
    // A process that has no handler yet is ended by the signal itself.
    expect(signal ?? code).toBe(signal === null ? 143 : 'SIGTERM');
  });

  it('at any moment of its start', async () => {
    const moments = casesOf([150, 600], [100, 200, 300, 400, 500, 600, 700, 800, 1_000, 1_500]);
    const exits = moments.map(async (ms) => {
      const { child, exited } = start(part);
      await delay(ms);
      child.kill('SIGTERM');
      const [code, signal] = await exited;
      return signal ?? code;
    });
    // A lost signal would leave the process running.
    for (const exit of await Promise.all(exits)) expect([0, 143, 'SIGTERM']).toContain(exit);
  });

  it('with status 0 while no server that it connects to responds', async () => {
    const before = silent.accepted();
    const { child, log, exited } = start(part);
    await waitFor(
      () => (part === 'server' ? log().includes('Server is listening') : silent.accepted() > before + 1),
      `the ${part} has started`,
    );
    child.kill('SIGTERM');
    expect({ exit: await exited, log: log() }).toEqual({
      exit: [0, null],
      log: expect.stringContaining('is shutting down'),
    });
  });
});
