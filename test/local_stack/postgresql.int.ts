import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createChildren, type Child } from '../../src/local_stack/children.ts';
import { keepPorts } from '../../src/local_stack/ports.ts';
import { untilReady } from '../../src/local_stack/ready.ts';
import {
  postgresqlAnswers,
  postgresqlProgram,
  postgresqlUrl,
} from '../../src/local_stack/servers/postgresql.ts';
import { supervise } from '../../src/local_stack/supervise.ts';
import { until } from '../setup/until.ts';
import { temporaryFolder } from './data_folder.ts';

describe('PostgreSQL on this machine', () => {
  const folder = temporaryFolder();
  const children = createChildren(folder);
  const password = 'secret';
  afterAll(() => children.stopAll());

  async function start() {
    const { postgresql: port } = await keepPorts(folder.inside('ports.json'), ['postgresql']);
    const child = children.start(await postgresqlProgram(folder, port, password, false));
    await untilReady(child, () => postgresqlAnswers(port, password));
    return { child, url: postgresqlUrl(port, password) };
  }

  async function ask(url: string, statement: string): Promise<unknown> {
    const client = new pg.Client(url);
    // The statement that is lost with it fails as well.
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows;
    } finally {
      await client.end();
    }
  }

  it('keeps its data through kill -9, and starts though its old process id is in use', async () => {
    const first = await start();
    await ask(first.url, 'create table kept as select 1 as number');
    await ask(first.url, 'checkpoint');
    process.kill(first.child.pid, 'SIGKILL');
    await first.child.exited;
    const file = folder.inside('postgresql', 'postmaster.pid');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^\d+/, String(process.pid)));
    const second = await start();
    await expect(ask(second.url, 'select * from kept')).resolves.toEqual([{ number: 1 }]);
    process.kill(second.child.pid, 'SIGINT');
    await second.child.exited;
  });

  it('starts again after kill -9 in the middle of a statement, whose session does not see it', async () => {
    const { child, url } = await start();
    let again: Child | undefined;
    void supervise(children, child, () => undefined, { onRestart: (next) => (again = next) });
    const busy = ask(url, 'select count(*) from generate_series(1, 100000000000)').catch(() => 'lost');
    await until(
      async () =>
        JSON.stringify(
          await ask(url, "select count(*) from pg_stat_activity where state = 'active'"),
        ).includes('2'),
      'the statement runs',
    );
    process.kill(child.pid, 'SIGKILL');
    await expect(busy).resolves.toBe('lost');
    await until(
      () =>
        ask(url, 'select from kept').then(
          () => true,
          () => false,
        ),
      'it answers again',
    );
    expect(again?.pid).not.toBe(child.pid);
  });
});
