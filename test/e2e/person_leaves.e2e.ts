import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { NoSuchKey, paginateListObjectsV2 } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseManifest } from '../../src/destination/manifest.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { exportd } from '../cli/command_line.ts';
import { type IndependentReader, startDuckDb } from '../encoding/duckdb.ts';
import { codeBlocks } from '../readme/readme_blocks.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { keysUnder, readObject } from './rows.ts';
import { type Stack, startStack } from './stack.ts';

const page = 'src/guides/person_leaves.md';
const hours = 4;
/** Other rows of each hour. */
const others = 6;
const mark = `leaves-${randomUUID()}`;
const ids = [`${mark}@example.com`, `${mark}'s device`];

const exportsOf = {
  plain: { model: 'events', config: { file_format: 'JSONLines', compression: 'gzip' } },
  delta: {
    model: 'events',
    config: { file_format: 'Parquet', compression: 'snappy', table_format: 'delta' },
  },
  persons: { model: 'persons', config: { file_format: 'CSV', compression: 'zstd' } },
} as const;
type ExportName = keyof typeof exportsOf;
const names = Object.keys(exportsOf) as ExportName[];

let stack: Stack;
let duckDb: IndependentReader;
let key: string;
const exportIds = new Map<ExportName, string>();

beforeAll(async () => {
  [stack, duckDb] = await Promise.all([
    startStack('person-leaves', {
      EXPORTD_OLD_GENERATION_RETENTION: '0s',
      EXPORTD_TABLE_FILE_RETENTION: '0s',
      EXPORTD_MAINTENANCE_INTERVAL: '1s',
    }),
    startDuckDb(),
  ]);
  key = await stack.newKey(['batch_export:read', 'batch_export:write', 'query:read']);
});
afterAll(async () => {
  duckDb.close();
  await stack.stop();
});

const hour = (number: number): string => hourAgo(hours - number + 2).toISOString();

/** The person has events of two ids in the first and the second hour, no other row is in the last one, and none of theirs in the third. */
async function insertEvents(): Promise<void> {
  await stack.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
     select $1, gen_random_uuid(), 'visit', distinct_id, gen_random_uuid(), '{"a": 1}', moment, moment, moment
     from (
       select 'other ' || n as distinct_id, unnest($2::timestamptz[]) + n * interval '9 minutes' as moment
       from generate_series(1, ${others}) n
       union all
       select unnest($4::text[]), unnest($3::timestamptz[]) + n * interval '20 minutes' from generate_series(0, 2) n
     ) rows`,
    [stack.projectId, [1, 2, 3].map(hour), [1, 2, 4].map(hour), [ids[0], ids[1], ids[0]]],
  );
}

/** Each has one distinct id, the person who leaves two; all were last changed in one hour. */
async function insertPersons(): Promise<void> {
  await stack.pool.query(
    `with person as (
       insert into persons (team_id, id, properties, created_at, updated_at, version)
       select $1, gen_random_uuid(), jsonb_build_object('n', n), $2, $2::timestamptz + n * interval '9 minutes', 1
       from generate_series(0, ${others}) n returning id, updated_at, (properties ->> 'n')::int as n)
     insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select $1, distinct_id, id, 1, updated_at from person
     cross join lateral (
       select 'other ' || n as distinct_id where n > 0 union all select unnest($3::text[]) where n = 0) mapping`,
    [stack.projectId, hour(1), ids],
  );
}

/** The person who leaves, and another one, change in the third hour. */
const changePersons = () =>
  stack.pool.query(
    `update persons set updated_at = $2::timestamptz + interval '1 minute', version = 2
     where team_id = $1 and properties ->> 'n' in ('0', '1')`,
    [stack.projectId, hour(3)],
  );

const environment = () => ({ EXPORTD_BASE_URL: stack.baseUrl, EXPORTD_API_KEY: key });

/** Runs the command of the page, or the same without its last option, and waits until its intervals are exported. */
async function backfill(
  name: ExportName,
  [start, end]: readonly [string, string],
  { allowShrink = true } = {},
): Promise<void> {
  const [command = ''] = codeBlocks('What to do', 'sh', page);
  const [, ...args] = command.trim().split(' ').slice(1);
  const id = exportIds.get(name) ?? '';
  const values: Readonly<Record<string, string>> = { $ID: id, $START: start, $END: end };
  const given = args.map((arg) => values[arg] ?? arg);
  expect(given.at(-1)).toBe('--allow-shrink');
  const { code, stderr } = await exportd(environment(), ...(allowShrink ? given : given.slice(0, -1)));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  await waitFor(async () => {
    const { body } = await stack.call('GET', `/batch_exports/${id}/backfills/?limit=1`);
    return (body.results as { status: string }[])[0]?.status === 'Completed';
  }, `the backfill of ${name} is Completed`);
}

/** The check of the page. @throws Error with what it prints if it has findings */
async function verify(id: string): Promise<void> {
  const { code, stdout, stderr } = await exportd(stack.environment, 'verify', id, '--deep');
  if (code !== 0) throw new Error(`exportd verify failed: ${stdout}${stderr}`);
}

/** What the page says with other ids: it is SQL, in which a quote is doubled. */
const ofPerson = (sql: string): string =>
  sql
    .replaceAll('anna@example.com', ids[0] ?? '')
    .replaceAll('device-7', (ids[1] ?? '').replaceAll("'", "''"));

/** What DuckDB reads of all objects of the bucket, whatever manifests name. */
interface Found {
  /** The rows of each export. */
  readonly rows: ReadonlyMap<string, readonly string[]>;
  /** The objects that have the mark of the person. */
  readonly marked: readonly string[];
}

const isLog = (key: string): boolean => key.includes('/_delta_log/');
const isManifest = (key: string): boolean => key.includes('/_manifests/');

/** @throws Error for an object that is no file, no manifest and of no log */
async function readBucket(): Promise<Found> {
  const { bucket } = stack;
  const folder = mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'bucket-'));
  const keys: string[] = [];
  for await (const { Contents = [] } of paginateListObjectsV2(bucket, { Bucket: bucket.bucket }))
    keys.push(...Contents.map(({ Key = '' }) => Key));
  const rows = new Map<string, string[]>();
  const marked = new Set<string>();
  const columns = new Map<string, readonly ExportedColumn[]>();
  const objects: { readonly name: string; readonly prefix: string; readonly path: string }[] = [];
  for (const name of keys) {
    const bytes = await readObject(bucket, name).catch((error: unknown) => {
      // It was deleted since the list.
      if (error instanceof NoSuchKey) return null;
      throw error;
    });
    if (!bytes) continue;
    const [prefix, path] = [name.split('/')[0] ?? '', join(folder, name)];
    objects.push({ name, prefix, path });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    if (bytes.includes(mark)) marked.add(name);
    const manifest = isManifest(name) ? parseManifest(bytes.toString()) : undefined;
    if (manifest) columns.set(prefix, manifest.columns as readonly ExportedColumn[]);
  }
  for (const { name, prefix, path } of objects.filter(({ name }) => !isManifest(name))) {
    const ofExport = columns.get(prefix) ?? [];
    const reading: Readonly<Record<string, () => Promise<readonly (readonly (string | null)[])[]>>> = {
      plain: async () => (await duckDb.jsonTexts(path)).map((line) => [line]),
      persons: () => duckDb.csv(path, ofExport),
      delta: () => duckDb.parquet(path, isLog(name) ? [{ name: 'add', type: 'json' }] : ofExport),
    };
    const read = reading[prefix];
    if (!read) throw new Error(`${name} is of no export.`);
    if (isLog(name) && !name.endsWith('.parquet')) continue;
    const found = (await read()).map((row) => JSON.stringify(row));
    if (found.some((row) => row.includes(mark))) marked.add(name);
    if (!isLog(name)) rows.set(prefix, [...(rows.get(prefix) ?? []), ...found]);
  }
  return { rows, marked: [...marked].sort() };
}

/** The tables of the control database that have the person. */
async function tablesWithPerson(): Promise<readonly string[]> {
  const { rows: tables } = await stack.pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables
     where table_schema = 'exportd' and table_type = 'BASE TABLE' order by name`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const stored = await stack.pool.query(
      `select from exportd."${name}" as stored where strpos(stored::text, $1) > 0 limit 1`,
      [mark],
    );
    if (stored.rowCount !== 0) found.push(name);
  }
  return found;
}

describe('a person who leaves', () => {
  it('is in no object of the bucket after what the page says, and every other row is there once', async () => {
    await insertEvents();
    await insertPersons();
    const range = [hour(1), hour(hours + 1)] as const;
    for (const name of names) {
      const { model, config } = exportsOf[name];
      exportIds.set(name, await stack.createExport({ model }, { ...config, prefix: name }));
      await backfill(name, range, { allowShrink: false });
    }
    await changePersons();
    // Without the option former states stay, as `earlier` of the first hour.
    await backfill('persons', range, { allowShrink: false });
    const before = await readBucket();
    const markedOf = (name: ExportName) => before.marked.filter((key) => key.startsWith(`${name}/`));
    expect(markedOf('plain')).toHaveLength(3);
    expect(markedOf('delta')).toHaveLength(3);
    expect(markedOf('persons').filter((key) => !isManifest(key))).toHaveLength(2);

    const [question = '', deletion = ''] = codeBlocks('What to do', 'sql', page);
    const asked = await stack.call(
      'POST',
      '/query/',
      { query: { kind: 'DialectQuery', query: ofPerson(question) } },
      { authorization: `Bearer ${key}` },
    );
    const found = (asked.body.results as [string, number][]).map(([at, events]) => [
      new Date(at).toISOString(),
      events,
    ]);
    expect(found).toEqual([
      [hour(1), 3],
      [hour(2), 3],
      [hour(4), 3],
    ]);
    await stack.pool.query(ofPerson(deletion));
    // The check of the page finds what is left to do.
    for (const id of exportIds.values()) await expect(verify(id)).rejects.toThrow(/unexpected/);
    for (const [at] of found)
      for (const name of ['plain', 'delta'] as const)
        await backfill(name, [String(at), new Date(Date.parse(String(at)) + 3_600_000).toISOString()]);
    await backfill('persons', range);

    // To read the whole bucket takes seconds, so once the files of before are gone.
    const files = before.marked.filter((name) => !isManifest(name) && !isLog(name));
    await waitFor(async () => {
      const keys = await keysUnder(stack.bucket, '');
      return !files.some((name) => keys.includes(name));
    }, 'the files with the person are deleted');
    let after = before;
    await waitFor(
      async () => (after = await readBucket()).marked.length === 0,
      () => `no object has the person; ${after.marked.join(', ')} have`,
    );
    const { rows: events } = await stack.pool.query<{ uuid: string }>(
      'select uuid from events where team_id = $1 order by uuid::text',
      [stack.projectId],
    );
    expect(events).toHaveLength(3 * others);
    const uuids = events.map(({ uuid }) => uuid);
    const uuidsIn = (rows: readonly string[] = []) =>
      rows.map((row) => /[\da-f]{8}-[\da-f-]{27}/.exec(row)?.[0]).sort();
    expect(uuidsIn(after.rows.get('plain'))).toEqual(uuids);
    expect(uuidsIn(after.rows.get('delta'))).toEqual(uuids);
    const table = await createDeltaReader(stack.bucket, 'delta').rows();
    expect(table.map(({ uuid }) => uuid).sort()).toEqual(uuids);
    const persons = after.rows.get('persons') ?? [];
    expect(persons.map((row) => /other \d/.exec(row)?.[0]).sort()).toEqual(
      Array.from({ length: others }, (_, index) => `other ${index + 1}`),
    );
    for (const id of exportIds.values()) await verify(id);

    // What stays, as the page says. A deletion is recorded after it.
    let stays: readonly string[] = [];
    await waitFor(
      async () => (stays = await tablesWithPerson()).join() === 'journal_events,query_result_parts',
      () => `the journal and the result of the query have the person; ${stays.join(', ')} have`,
    );
    const { rows: streams } = await stack.pool.query<{ model: string }>(
      `select distinct run.model from exportd.journal_events event join exportd.batch_export_runs run
         on run.id = event.stream_id where strpos(event.data::text, $1) > 0`,
      [mark],
    );
    expect(streams).toEqual([{ model: 'persons' }]);
  });
});
