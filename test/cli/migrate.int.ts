import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import type { ReadModelsStatus } from '../../src/projections/read_models.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { definitionOf } from '../domain/definition.ts';
import { migrateControl } from '../../src/migrate/migrate.ts';
import { exportd } from './command_line.ts';

const database = useTestDatabase();

const dryRun = async (): Promise<unknown> => {
  const { code, stdout } = await exportd({ DATABASE_URL: database.url }, 'migrate', '--dry-run', '--json');
  expect(code).toBe(0);
  return JSON.parse(stdout);
};

const setIntervalsVersion = (change: string) =>
  database.pool.query(
    `update exportd.projection_versions set version = version ${change} where name = 'intervals'`,
  );

describe('exportd projections', () => {
  const run = async (...args: readonly string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await exportd({ DATABASE_URL: database.url }, ...args, '--json');
    return code === 0 ? JSON.parse(stdout) : stderr;
  };
  const intervals = async () => {
    const { models, next, previous } = (await run('projections', 'status')) as ReadModelsStatus;
    return { ...models.find(({ name }) => name === 'intervals'), next, previous };
  };

  it('builds what has changed, says how far it is, and switches when told', async () => {
    await openJournal(database.pool).transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, randomUUID());
      const scheduled_until = '2026-11-01T10:00:00.000Z';
      const data = { team_id: 1, definition: definitionOf({}), scheduled_until, paused: true };
      await stream.append('created', [{ type: 'BatchExportCreated', data }]);
    });
    expect(await run('projections', 'rebuild')).toEqual({ events: null });
    await setIntervalsVersion('- 1');
    const { known = 0, live } = await intervals();
    expect(live).toBe(known - 1);
    expect(await run('projections', 'rebuild')).toEqual({ events: 1 });
    expect(await intervals()).toMatchObject({
      live: known - 1,
      next: { events: 1, is_running: false, remaining_seconds: 0 },
      previous: null,
    });
    expect(await run('projections', 'switch')).toMatchObject({ versions: { intervals: known } });
    expect(await intervals()).toMatchObject({ live: known, next: null, previous: { position: 1 } });
    expect(await run('projections', 'switch')).toContain('no read models to switch to');
    expect(await run('projections', 'rebuild', 'interval')).toContain('interval is no read model');
    expect(await run('rebuild')).toEqual({ events: 1 });
  });
});

describe('exportd migrate', () => {
  it('needs no right to create schemas once there is one', async () => {
    const role = `migrator_${randomUUID().slice(0, 8)}`;
    const url = Object.assign(new URL(database.url), { username: role, password: 'migrator' });
    await database.pool.query(
      `create role ${role} login password 'migrator';
       grant exportd_other_roles to ${role};
       grant all on schema exportd to ${role};
       grant all on all tables in schema exportd to ${role}`,
    );
    try {
      expect(await migrateControl(url.href)).toEqual({ applied: [] });
    } finally {
      await database.pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });
});

describe('exportd migrate --dry-run', () => {
  it('reports that an up-to-date database needs no downtime', async () => {
    expect(await dryRun()).toEqual({ migrations: [], rebuilds_read_models: false, rebuilt_read_models: [] });
    const { stdout } = await exportd({ DATABASE_URL: database.url }, 'migrate', '--dry-run');
    expect(stdout).toContain('can be replaced one after another');
  });

  it('reports read models of another version, and leaves them', async () => {
    await setIntervalsVersion('- 1');
    const expected = { migrations: [], rebuilds_read_models: true, rebuilt_read_models: ['intervals'] };
    expect(await dryRun()).toEqual(expected);
    expect(await dryRun()).toEqual(expected);
    const { stdout } = await exportd({ DATABASE_URL: database.url }, 'migrate', '--dry-run');
    expect(stdout).toContain('Would build intervals from the journal beside the live read models');
  });

  it('reports missing migrations, also of an empty database', async () => {
    await database.pool.query('delete from exportd.migrations');
    expect(await dryRun()).toMatchObject({ migrations: ['0001_baseline'] });
    await database.pool.query('drop table exportd.migrations');
    expect(await dryRun()).toMatchObject({ migrations: ['0001_baseline'], rebuilds_read_models: true });
  });
});
