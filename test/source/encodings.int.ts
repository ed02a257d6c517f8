import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool } from '../../src/journal/database.ts';
import { migrateSource } from '../../src/migrate/migrate.ts';
import { fromSetUp } from '../setup/environment.ts';
import { databaseOf, onServer } from '../setup/template_database.ts';
import { blocksOf, hourOf, neverAborted, rowsOf, sourceOf, wholeRange } from './rows.ts';

const server = fromSetUp('EXPORTD_TEST_DATABASE_URL');
const encodings = ['UTF8', 'LATIN1', 'LATIN9', 'WIN1252', 'SQL_ASCII'] as const;
const urls = new Map<string, string>();

beforeAll(async () => {
  for (const encoding of encodings) {
    const name = `encoding_${encoding.toLowerCase()}_${randomUUID().slice(0, 8)}`;
    await onServer(
      server,
      `create database ${name} encoding '${encoding}' template template0 locale_provider libc lc_collate 'C' lc_ctype 'C'`,
    );
    const url = databaseOf(server, name);
    urls.set(encoding, url);
    await migrateSource(url);
    const pool = createPool(url, { max: 1 });
    await pool.query(
      `insert into persons (team_id, id, properties, created_at, updated_at, version)
       select 1, ('00000000-0000-4000-8000-00000000000' || n)::uuid, jsonb_build_object('name', 'Zoë ' || n), '2026-11-01 10:05Z',
         '2026-11-01 10:06Z', n from generate_series(0, 4) n`,
    );
    await pool.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
       select 1, 'Zoë ' || n, ('00000000-0000-4000-8000-00000000000' || n)::uuid, n, '2026-11-01 10:07Z' from generate_series(0, 4) n`,
    );
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, created_at, inserted_at)
       select 1, md5(n::text)::uuid, 'höher', 'Zoë ' || n, jsonb_build_object('é', 'ñ'), '2026-11-01 10:07Z', '2026-11-01 10:07Z', '2026-11-01 10:07Z'
       from generate_series(0, 4) n`,
    );
    await pool.end();
  }
}, 120_000);
afterAll(async () => {
  for (const url of urls.values())
    await onServer(server, `drop database ${new URL(url).pathname.slice(1)} with (force)`);
});

const readAll = async (encoding: string) => {
  const source = sourceOf(urls.get(encoding) ?? '');
  try {
    const both = [];
    for (const model of ['events', 'persons'] as const) {
      const rows = (await blocksOf(source, hourOf(model))).flatMap(rowsOf);
      both.push({ rows, fingerprint: await source.fingerprint(hourOf(model)) });
    }
    return both;
  } finally {
    await source.close();
  }
};

describe('a database with another encoding', () => {
  it.each(encodings)('has the rows and fingerprints of UTF-8, which files have: %s', async (encoding) => {
    expect(await readAll(encoding)).toEqual(await readAll('UTF8'));
  });

  it.each(encodings)('is said to store any bytes if it does: %s', async (encoding) => {
    const source = sourceOf(urls.get(encoding) ?? '');
    const { findings } = await source.check(1, { model: 'persons' });
    await source.close();
    const warned = findings.filter(({ message }) => message.startsWith('Its encoding is SQL_ASCII'));
    expect(warned).toHaveLength(encoding === 'SQL_ASCII' ? 1 : 0);
  });

  it('is said to have no fingerprints of other than ASCII if it has several bytes and is not UTF-8', async () => {
    const name = `encoding_euc_${randomUUID().slice(0, 8)}`;
    await onServer(
      server,
      `create database ${name} encoding 'EUC_JP' template template0 locale_provider libc lc_collate 'C' lc_ctype 'C'`,
    );
    urls.set('EUC_JP', databaseOf(server, name));
    await migrateSource(databaseOf(server, name));
    const source = sourceOf(databaseOf(server, name));
    const { findings } = await source.check(1, { model: 'persons' });
    await source.close();
    expect(findings.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^Its encoding is EUC_JP, .* runs of persons fail/),
    );
  });

  it('has a row with bytes that are not UTF-8, which is named, or read without them', async () => {
    const url = urls.get('SQL_ASCII') ?? '';
    const pool = createPool(url, { max: 1 });
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, md5(n::text)::uuid, convert_from(case n when 2 then '\\x636166e9' else '\\x63616665' end::bytea, 'SQL_ASCII'), 'user', '{}',
         '2026-11-01 12:07Z', '2026-11-01 12:07Z' from generate_series(0, 4) n`,
    );
    await pool.end();
    const source = sourceOf(url);
    const range = {
      ...hourOf('events'),
      interval: { start: '2026-11-01T12:00:00Z', end: '2026-11-01T13:00:00Z' },
    };
    await expect(blocksOf(source, range)).rejects.toThrow(
      /invalid byte sequence .*22021\. It is the row .*: its column event\./,
    );
    const options = { blockBytes: 1_000_000, signal: neverAborted(), replacesBadValues: true };
    const rows = [];
    for await (const block of source.blocks(range, wholeRange, options)) rows.push(...rowsOf(block));
    await source.close();
    expect(rows.map(({ event }) => event).sort()).toEqual([
      'cafe',
      'cafe',
      'cafe',
      'cafe',
      expect.stringContaining('exportd/unreadable/invalid byte sequence'),
    ]);
  });
});
