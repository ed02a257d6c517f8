import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createChildren, endRecordedProcesses, type Program } from '../../src/local_stack/children.ts';
import { LaunchError } from '../../src/local_stack/launch_error.ts';
import { identify, isRunning } from '../../src/local_stack/process_identity.ts';
import { untilReady } from '../../src/local_stack/ready.ts';
import { supervise } from '../../src/local_stack/supervise.ts';
import { until } from '../setup/until.ts';
import { temporaryFolder } from './data_folder.ts';

const shell = (name: Program['name'], script: string): Program => ({
  name,
  command: '/bin/sh',
  args: ['-c', script],
  stopSignal: 'SIGTERM',
});
const lasting = (name: Program['name']) => shell(name, 'exec sleep 1000');
const quiet = () => undefined;

describe('the processes of a stack', () => {
  const folder = temporaryFolder();
  const children = createChildren(folder);
  afterAll(() => children.killAll());
  const recorded = () => readdirSync(folder.inside('processes'));

  it('are started again when they die, until all are stopped, those that use others first', async () => {
    const order: string[] = [];
    const worker = children.start(lasting('worker'));
    const database = children.start(lasting('postgresql'));
    let current = worker;
    const supervised = supervise(children, worker, quiet, {
      firstDelayMs: 1,
      onRestart: (child) => (current = child),
    });
    process.kill(worker.pid, 'SIGKILL');
    await until(() => current !== worker, 'the worker was started again');
    expect(recorded().sort()).toEqual(['postgresql.json', 'worker.json']);
    void current.exited.then(() => order.push('worker'));
    void database.exited.then(() => order.push('postgresql'));
    await children.stopAll();
    await supervised;
    expect(order).toEqual(['worker', 'postgresql']);
    expect(recorded()).toEqual([]);
    expect(() => children.start(lasting('worker'))).toThrow();
  });
});

describe('a process that cannot be kept up', () => {
  const folder = temporaryFolder();
  const children = createChildren(folder);

  it('is given up after some ends in a short time', async () => {
    const failing = shell('s3', 'echo again >> starts; exit 3');
    const how = await new Promise((resolve) => {
      void supervise(children, children.start(failing), quiet, {
        firstDelayMs: 1,
        longestDelayMs: 2,
        onGiveUp: (_, ending) => resolve(ending),
      });
    });
    expect(how).toBe('ended with code 3');
    expect(readFileSync(folder.inside('starts'), 'utf8').trim().split('\n').length).toBeLessThan(10);
  });

  it('says how it ended and what it wrote last when it never gets ready', async () => {
    const failing = children.start(shell('temporal', 'echo no luck; exit 4'));
    const waiting = untilReady(failing, () => Promise.resolve(false));
    await expect(waiting).rejects.toThrow(LaunchError);
    await expect(waiting).rejects.toThrow(/temporal ended with code 4 .*no luck/s);
  });

  it('says so when there is no such program', async () => {
    const missing = children.start({ ...lasting('temporal'), command: '/no/such/program' });
    await expect(untilReady(missing, () => Promise.resolve(false))).rejects.toThrow(/could not be started/);
  });
});

describe('what a killed start has left running', () => {
  const folder = temporaryFolder();
  const otherFolder = temporaryFolder();

  it('is ended by the next one, and nothing else is', async () => {
    const orphan = createChildren(folder).start(lasting('server'));
    const bystander = createChildren(otherFolder).start(lasting('server'));
    const identities = [orphan, bystander].map(({ pid }) => identify(pid));
    await expect(endRecordedProcesses(folder)).resolves.toEqual(['server']);
    expect(identities.map((identity) => identity !== undefined && isRunning(identity))).toEqual([
      false,
      true,
    ]);
    process.kill(bystander.pid, 'SIGKILL');
    await bystander.exited;
  });
});
