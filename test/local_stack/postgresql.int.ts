import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import {
  type Child,
  createChildProcesses,
  supervise,
  waitUntilReady,
} from '../../src/local_stack/child_processes.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import {
  isPostgresqlReady,
  postgresqlProgram,
  postgresqlUrl,
} from '../../src/local_stack/servers/postgresql.ts';
import { waitFor } from '../setup/wait_for.ts';
import { temporaryFolder } from './data_folder.ts';

describe('the local PostgreSQL', () => {
  const folder = temporaryFolder();
  const children = createChildProcesses(folder);
  const password = 'secret';
  afterAll(() => children.stopAll());

  async function start() {
    const { postgresql: port } = await assignPorts(folder.inside('ports.json'), ['postgresql']);
    const child = children.start(await postgresqlProgram(folder, port, password, false));
    await waitUntilReady(child, () => isPostgresqlReady(port, password));
    return { child, url: postgresqlUrl(port, password) };
  }

  async function query(url: string, statement: string): Promise<unknown> {
    const client = new pg.Client(url);
    // The connection reports a killed server in addition to the failed statement.
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows;
    } finally {
      await client.end();
    }
  }

  it('keeps its data after kill -9 and starts when another process has its old id', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 1 as number');
    await query(first.url, 'checkpoint');
    process.kill(first.child.pid, 'SIGKILL');
    await first.child.exited;
    const file = folder.inside('postgresql', 'postmaster.pid');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^\d+/, String(process.pid)));
    const second = await start();
    await expect(query(second.url, 'select * from kept')).resolves.toEqual([{ number: 1 }]);
    process.kill(second.child.pid, 'SIGINT');
    await second.child.exited;
  });

  it('restarts after kill -9 during a statement, whose backend keeps running', async () => {
    const { child, url } = await start();
    let restarted: Child | undefined;
    void supervise(children, child, () => undefined, { onRestart: (next) => (restarted = next) });
    const busy = query(url, 'select count(*) from generate_series(1, 100000000000)').catch(() => 'lost');
    await waitFor(
      async () =>
        JSON.stringify(
          await query(url, "select count(*) from pg_stat_activity where state = 'active'"),
        ).includes('2'),
      'the statement runs',
    );
    process.kill(child.pid, 'SIGKILL');
    await expect(busy).resolves.toBe('lost');
    await waitFor(
      () =>
        query(url, 'select from kept').then(
          () => true,
          () => false,
        ),
      'it is ready again',
    );
    expect(restarted?.pid).not.toBe(child.pid);
  });
});
