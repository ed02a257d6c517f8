import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import {
  createChildProcesses,
  type ProgramSpec,
  stopRecordedProcesses,
  supervise,
  waitUntilReady,
} from '../../src/local_stack/child_processes.ts';
import { LaunchError } from '../../src/local_stack/data_folder.ts';
import { identify, isRunning } from '../../src/local_stack/lock.ts';
import { waitFor } from '../setup/wait_for.ts';
import { temporaryFolder } from './data_folder.ts';

const shell = (name: ProgramSpec['name'], script: string): ProgramSpec => ({
  name,
  command: '/bin/sh',
  args: ['-c', script],
  stopSignal: 'SIGTERM',
});
const lasting = (name: ProgramSpec['name']) => shell(name, 'exec sleep 1000');
const ignoreReport = () => undefined;

describe('the processes of a stack', () => {
  const folder = temporaryFolder();
  const children = createChildProcesses(folder);
  afterAll(() => children.killAll());
  const recorded = () => readdirSync(folder.inside('processes'));

  it('are restarted when they die and stopped in order, each before the servers that it uses', async () => {
    const order: string[] = [];
    const worker = children.start(lasting('worker'));
    const database = children.start(lasting('postgresql'));
    const secondWorker = children.start(lasting('worker-2'));
    let current = worker;
    const supervised = supervise(children, worker, ignoreReport, {
      initialDelayMs: 1,
      onRestart: (child) => (current = child),
    });
    process.kill(worker.pid, 'SIGKILL');
    await waitFor(() => current !== worker, 'the worker was restarted');
    expect(recorded().sort()).toEqual(['postgresql.json', 'worker-2.json', 'worker.json']);
    void current.exited.then(() => order.push('worker'));
    void database.exited.then(() => order.push('postgresql'));
    void secondWorker.exited.then(() => order.push('worker-2'));
    await children.stopAll();
    await supervised;
    expect(order).toEqual(['worker-2', 'worker', 'postgresql']);
    expect(recorded()).toEqual([]);
    expect(() => children.start(lasting('worker'))).toThrow();
  });
});

describe('a process that keeps failing', () => {
  const folder = temporaryFolder();
  const children = createChildProcesses(folder);

  it('is not restarted again after several rapid exits', async () => {
    const failing = shell('s3', 'echo again >> starts; exit 3');
    const how = await new Promise((resolve) => {
      void supervise(children, children.start(failing), ignoreReport, {
        initialDelayMs: 1,
        maxDelayMs: 2,
        onCrashLoop: (_, exit) => resolve(exit),
      });
    });
    expect(how).toBe('exited with code 3');
    expect(readFileSync(folder.inside('starts'), 'utf8').trim().split('\n').length).toBeLessThan(10);
  });

  it('reports its exit code and last output when it exits before it is ready', async () => {
    const failing = children.start(shell('temporal', 'echo no luck; exit 4'));
    const waiting = waitUntilReady(failing, () => Promise.resolve(false));
    await expect(waiting).rejects.toThrow(LaunchError);
    await expect(waiting).rejects.toThrow(/temporal exited with code 4 .*no luck/s);
  });

  it('reports a missing program', async () => {
    const missing = children.start({ ...lasting('temporal'), command: '/no/such/program' });
    await expect(waitUntilReady(missing, () => Promise.resolve(false))).rejects.toThrow(
      /could not be started/,
    );
  });
});

describe('processes of a killed start', () => {
  const folder = temporaryFolder();
  const otherFolder = temporaryFolder();

  it('are stopped by the next start, other processes are not', async () => {
    const orphan = createChildProcesses(folder).start(lasting('server'));
    const bystander = createChildProcesses(otherFolder).start(lasting('server'));
    const identities = [orphan, bystander].map(({ pid }) => identify(pid));
    await expect(stopRecordedProcesses(folder)).resolves.toEqual(['server']);
    expect(identities.map((identity) => identity !== undefined && isRunning(identity))).toEqual([
      false,
      true,
    ]);
    process.kill(bystander.pid, 'SIGKILL');
    await bystander.exited;
  });
});
