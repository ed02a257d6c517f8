import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Settings } from '../../src/config/settings.ts';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import type { Source } from '../../src/source/source.ts';
import { fromSetUp } from '../setup/environment.ts';
import { databaseOf, onServer, templateDatabase } from '../setup/template_database.ts';

/** A database of the source that can be backed up and restored, or replaced by a copy as after a failover. */
interface SourceDatabase {
  /** The source of exports, wherever the database is now. */
  readonly source: Source;
  pool(): Pool;
  url(): string;
  connect(): Promise<pg.Client>;
  backUp(): Promise<void>;
  /** Goes back to the backup, or else to a copy of what there is: a failover. No transaction may be open. */
  replace(by: 'backup' | 'copy'): Promise<void>;
  drop(): Promise<void>;
}

/** Creates the database. Its server has no settle delay. */
export async function createSourceDatabase(settings: Settings): Promise<SourceDatabase> {
  const serverUrl = fromSetUp('EXPORTD_TEST_DATABASE_URL');
  const names: string[] = [];
  const copy = async (template: string): Promise<string> => {
    // Connections of encoder threads end too, as in a failover.
    await onServer(
      serverUrl,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${template}'`,
    );
    const name = `source_${randomUUID().replaceAll('-', '')}`;
    await onServer(serverUrl, `create database ${name} template ${template} strategy file_copy`);
    names.push(name);
    return name;
  };
  const open = (name: string) => {
    const url = databaseOf(serverUrl, name);
    return {
      name,
      url,
      pool: createPool(url, { max: 4 }),
      source: createSource({ sourceUrl: url, settings }),
    };
  };
  let current = open(await copy(templateDatabase));
  let backup: string | null = null;
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await Promise.all([current.pool.end(), current.source.close()]);
    isOpen = false;
  };
  const reopen = (name: string): void => {
    current = open(name);
    isOpen = true;
  };
  const copyCurrent = async (): Promise<string> => {
    await close();
    return copy(current.name);
  };
  return {
    source: {
      columns: (...options) => current.source.columns(...options),
      checkBarrier: (...options) => current.source.checkBarrier(...options),
      checkBarriers: (...options) => current.source.checkBarriers(...options),
      countRows: (...options) => current.source.countRows(...options),
      strayRows: (...options) => current.source.strayRows(...options),
      fingerprint: (...options) => current.source.fingerprint(...options),
      fingerprints: (...options) => current.source.fingerprints(...options),
      keys: (...options) => current.source.keys(...options),
      splitKeys: (...options) => current.source.splitKeys(...options),
      blocks: (...options) => current.source.blocks(...options),
      heldBlocks: (...options) => current.source.heldBlocks(...options),
      sample: (...options) => current.source.sample(...options),
      check: (...options) => current.source.check(...options),
      map: (...options) => current.source.map(...options),
      close: () => current.source.close(),
    },
    pool: () => current.pool,
    url: () => current.url,
    async connect() {
      const client = new pg.Client({ connectionString: current.url, application_name: 'writer' });
      await client.connect();
      return client;
    },
    async backUp() {
      backup = await copyCurrent();
      reopen(current.name);
    },
    async replace(by) {
      const replacement = by === 'backup' && backup !== null ? backup : current.name;
      await close();
      reopen(await copy(replacement));
    },
    async drop() {
      await close();
      for (const name of names) await onServer(serverUrl, `drop database if exists ${name} with (force)`);
    },
  };
}
