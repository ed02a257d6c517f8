import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { migrateControl } from '../../src/migrate/migrate.ts';
import { exportd } from './command_line.ts';

const database = useTestDatabase();

const dryRun = async (): Promise<unknown> => {
  const { code, stdout } = await exportd({ DATABASE_URL: database.url }, 'migrate', '--dry-run', '--json');
  expect(code).toBe(0);
  return JSON.parse(stdout);
};

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
      expect(await migrateControl(url.href)).toEqual([]);
    } finally {
      await database.pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });
});

describe('exportd migrate --dry-run', () => {
  it('reports that an up-to-date database needs no downtime', async () => {
    expect(await dryRun()).toEqual({ migrations: [], rebuilds_read_models: false });
    const { stdout } = await exportd({ DATABASE_URL: database.url }, 'migrate', '--dry-run');
    expect(stdout).toContain('can be replaced one after another');
  });

  it('reports read models of another version, and leaves them', async () => {
    await database.pool.query('update exportd.projection_versions set version = version - 1');
    expect(await dryRun()).toEqual({ migrations: [], rebuilds_read_models: true });
    expect(await dryRun()).toEqual({ migrations: [], rebuilds_read_models: true });
    const { stdout } = await exportd({ DATABASE_URL: database.url }, 'migrate', '--dry-run');
    expect(stdout).toContain('Stop all servers and workers');
  });

  it('reports missing migrations, also of an empty database', async () => {
    await database.pool.query('delete from exportd.migrations');
    expect(await dryRun()).toMatchObject({ migrations: ['0001_baseline'] });
    await database.pool.query('drop table exportd.migrations');
    expect(await dryRun()).toEqual({ migrations: ['0001_baseline'], rebuilds_read_models: true });
  });
});
