import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createChildren } from '../../src/embedded/children.ts';
import { keepPorts } from '../../src/embedded/ports.ts';
import { untilReady } from '../../src/embedded/ready.ts';
import {
  postgresqlAnswers,
  postgresqlProgram,
  postgresqlUrl,
} from '../../src/embedded/servers/postgresql.ts';
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
  });
});
