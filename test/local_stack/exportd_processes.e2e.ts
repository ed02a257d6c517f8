import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import {
  type Child,
  createChildProcesses,
  lastLines,
  supervise,
} from '../../src/local_stack/child_processes.ts';
import { startExportd } from '../../src/local_stack/exportd_processes.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { casesOf } from '../setup/effort.ts';
import { fromSetUp } from '../setup/environment.ts';
import { waitFor } from '../setup/wait_for.ts';
import { temporaryFolder } from './data_folder.ts';

const folder = temporaryFolder();
const children = createChildProcesses(folder);
const stoppedFolder = temporaryFolder();
// Responds like the server of another stack, which took the port after it was found free.
const other = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ status: 'ok', database: 'ok', temporal: 'ok', pid: process.pid }));
});
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await children.stopAll();
  other.closeAllConnections();
  other.close();
  await database.drop();
});

const start = (of: ReturnType<typeof createChildProcesses>, prefix: string, port: number) =>
  startExportd(
    of,
    {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      EXPORTD_TASK_QUEUE_PREFIX: prefix,
      EXPORTD_PORT: String(port),
      EXPORTD_ENCRYPTION_KEYS: `main:${Buffer.alloc(32, 1).toString('base64')}`,
    },
    `http://127.0.0.1:${port}`,
    { workflowBundle: fromSetUp('EXPORTD_WORKFLOW_BUNDLE') },
  );

it('is not ready when another server uses its port', async () => {
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const port = (other.address() as AddressInfo).port;
  await expect(start(children, 'another-server-at-the-port', port)).rejects.toThrow(
    `Port ${port} on 127.0.0.1 is in use`,
  );
});

it('ends at any moment of its start when it is told to, and is started again', async () => {
  const { http: port } = await assignPorts(folder.inside('ports.json'), ['http']);
  const of = createChildProcesses(stoppedFolder);
  const started: Child[] = [];
  const observed = {
    ...of,
    get stopping() {
      return of.stopping;
    },
    start: (...program: Parameters<typeof of.start>) => {
      const child = of.start(...program);
      started.push(child);
      return child;
    },
  };
  const newest = (name: string): Child | undefined =>
    started.findLast(({ program }) => program.name === name);
  /** Tells the newest process to stop `ms` milliseconds after its start, and waits for the next one. */
  const stop = async (name: 'server' | 'worker', ms: number): Promise<void> => {
    const child = await waitFor(() => newest(name), `the ${name} is started`);
    await delay(ms);
    process.kill(child.pid, 'SIGTERM');
    const exit = await child.exited;
    expect({ ms, ...exit, log: exit.wasStopped ? '' : lastLines(child.logFile, 20) }).toMatchObject({
      wasStopped: true,
    });
    await waitFor(() => newest(name) !== child, `the ${name} is started again`);
  };
  try {
    const starting = start(observed, 'told-to-stop', port);
    await Promise.all([stop('server', 300), stop('worker', 400)]);
    const { server, worker } = await starting;
    void supervise(observed, server, () => undefined);
    void supervise(observed, worker, () => undefined);
    const stopOften = async (name: 'server' | 'worker'): Promise<void> => {
      for (const ms of casesOf([550], [150, 350, 550, 750])) await stop(name, ms);
    };
    await Promise.all([stopOften('server'), stopOften('worker')]);
  } finally {
    await of.stopAll();
  }
});
