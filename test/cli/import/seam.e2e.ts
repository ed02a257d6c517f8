import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { DateTime } from 'luxon';
import type { FakeServer } from '../../destination/fake_server.ts';
import { exportedRows, keysUnder, readManifest, readObject } from '../../e2e/rows.ts';
import { startStack, type Stack } from '../../e2e/stack.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { exportd } from '../command_line.ts';
import { posthogIntervals } from './posthog_rules.ts';
import {
  commentsIn,
  destination,
  posthogKey,
  recorded,
  type RecordedExport,
  recordedRun,
  startRecordedServer,
  team,
} from './recordings.ts';

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
/** Read once: every interval that has ended by now is exported, by one product or the other. */
const now = new Date();
const floor = (length: number): number => Math.floor(now.getTime() / length) * length;
const iso = (time: number): string => new Date(time).toISOString();

/** A row of the source. Its id is what a file has of it, `at` its insertion time in microseconds since 1970. */
interface Row {
  readonly id: string;
  readonly at: number;
  readonly event: string;
  readonly plan: string;
}

/** An export of PostHog, the rows that its fields select there, and the column of their ids. */
interface Case {
  readonly json: RecordedExport;
  readonly seam: number;
  /** The length of three intervals or more. */
  readonly before: number;
  readonly until: number;
  readonly selects: (row: Row) => boolean;
  readonly column: string;
  readonly prefix: string;
}

/** The first boundary of a day at three o'clock in New York, some days ago. */
const newYorkSeam = DateTime.fromJSDate(now, { zone: 'America/New_York' })
  .startOf('day')
  .minus({ days: 2 })
  .set({ hour: 3 });
/** A Monday in Los Angeles two to three weeks ago. */
const monday = DateTime.fromJSDate(now, { zone: 'America/Los_Angeles' }).startOf('week').minus({ weeks: 2 });
const newYorkEnd = (() => {
  const today = newYorkSeam.plus({ days: 2 });
  return (today.toMillis() <= now.getTime() ? today : newYorkSeam.plus({ days: 1 })).toMillis();
})();

function casesFor(bucket: string, endpoint: string): Case[] {
  const to = (config: RecordedExport, type?: string, integration?: number) =>
    destination(
      { bucket_name: bucket, region: 'us-east-1', endpoint_url: endpoint, ...config },
      type,
      integration,
    );
  const lastRun = (end: number, length: number) => [recordedRun(iso(end - length), iso(end))];
  const hourly = floor(hour) - 2 * hour;
  const five = floor(5 * minute) - 20 * minute;
  const quarter = floor(15 * minute) - 45 * minute;
  return [
    {
      json: recorded({
        name: 'Hourly events',
        latest_runs: lastRun(hourly, hour),
        destination: to({ prefix: 'hourly/{year}/{month}/{day}', compression: 'gzip' }),
      }),
      seam: hourly,
      before: 3 * hour,
      until: floor(hour),
      selects: () => true,
      column: 'uuid',
      prefix: 'hourly',
    },
    {
      json: recorded({
        name: 'Daily persons',
        model: 'persons',
        interval: 'day',
        timezone: 'America/New_York',
        offset_hour: 3,
        latest_runs: lastRun(newYorkSeam.toMillis(), day),
        destination: to({ prefix: 'persons', file_format: 'Parquet', compression: 'zstd' }),
      }),
      seam: newYorkSeam.toMillis(),
      before: 3 * day,
      until: newYorkEnd,
      selects: () => true,
      column: 'distinct_id',
      prefix: 'persons',
    },
    {
      json: recorded({
        name: 'Purchases, every 5 minutes',
        interval: 'every 5 minutes',
        latest_runs: lastRun(five, 5 * minute),
        filters: [
          { type: 'event', key: 'plan', operator: 'exact', value: ['pro', 'team'] },
          { type: 'hogql', key: "properties.plan != 'team'", value: null },
        ],
        destination: to({
          prefix: 'purchases/{hour}',
          compression: 'gzip',
          include_events: ['purchase', 'signed up'],
          exclude_events: ['signed up'],
        }),
      }),
      seam: five,
      before: 15 * minute,
      until: floor(5 * minute),
      selects: ({ event, plan }) => event === 'purchase' && plan === 'pro',
      column: 'uuid',
      prefix: 'purchases',
    },
    {
      json: recorded({
        name: 'A query to another store',
        interval: 'every 15 minutes',
        latest_runs: lastRun(quarter, 15 * minute),
        schema: {
          fields: [{ expression: 'events.uuid', alias: 'id' }],
          values: {},
          hogql_query:
            "SELECT uuid AS id, event, properties.plan AS plan, _inserted_at FROM events WHERE event != 'signed up'",
        },
        // Newer versions keep the endpoint in an integration.
        destination: to({ prefix: 'query', endpoint_url: null }, 'S3Compatible', 12),
      }),
      seam: quarter,
      before: 45 * minute,
      until: floor(15 * minute),
      selects: ({ event }) => event !== 'signed up',
      column: 'id',
      prefix: 'query',
    },
    {
      json: recorded({
        name: 'Weekly, paused',
        interval: 'week',
        timezone: 'America/Los_Angeles',
        offset_day: 1,
        paused: true,
        last_paused_at: iso(monday.plus({ days: 2 }).toMillis()),
        // One more week, and a part of another that no run of either product ends in.
        end_at: iso(monday.plus({ weeks: 1, days: 2 }).toMillis()),
        latest_runs: lastRun(monday.toMillis(), 7 * day),
        destination: to({ prefix: 'weekly/{data_interval_start}' }),
      }),
      seam: monday.toMillis(),
      before: 14 * day,
      until: monday.plus({ weeks: 1 }).toMillis(),
      selects: () => true,
      column: 'uuid',
      prefix: 'weekly',
    },
  ];
}

/** Rows around each boundary from before the seam to the end: at it, a microsecond before and after it, and between two. */
function rowsOf({ json, seam, before, until }: Case): Row[] {
  const ends = posthogIntervals(json as { interval: string }, new Date(seam - before), new Date(until));
  const times = ends.flatMap(({ start, end }) => {
    const at = end * 1_000;
    return [at - 1, at, at + 1, Math.round((start + end) / 2) * 1_000];
  });
  return times.flatMap((at) =>
    [
      ['purchase', 'pro'],
      ['purchase', 'team'],
      ['signed up', 'pro'],
      ['$pageview', 'free'],
    ].map(([event = '', plan = '']) => ({ id: crypto.randomUUID(), at, event, plan })),
  );
}

/** ISO 8601 with microseconds. */
const timestampOf = (at: number): string =>
  `${iso(Math.floor(at / 1_000)).slice(0, -1)}${String(at % 1_000).padStart(3, '0')}Z`;

let stack: Stack;
let posthog: FakeServer;
let cases: Case[];
const events: Row[] = [];
const persons: Row[] = [];
const folder = mkdtempSync(join(tmpdir(), 'import-seam-'));

beforeAll(async () => {
  stack = await startStack('import-seam');
  cases = casesFor(stack.bucket.bucket, stack.bucket.endpoint);
  posthog = await startRecordedServer([
    ...cases.map(({ json }) => json),
    recorded({
      name: 'To Snowflake',
      destination: { type: 'Snowflake', config: { account: 'a' }, integration: null },
    }),
    recorded({ name: 'To BigQuery', destination: { type: 'BigQuery', config: {}, integration: 3 } }),
    recorded({ name: 'Sessions', model: 'sessions' }),
  ]);
  for (const one of cases) (one.json.model === 'persons' ? persons : events).push(...rowsOf(one));
  await stack.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, created_at, inserted_at)
     select $1, (row->>'id')::uuid, row->>'event', 'someone', jsonb_build_object('plan', row->>'plan'), moment, moment, moment
     from jsonb_array_elements($2::jsonb) row, lateral (select (row->>'time')::timestamptz as moment) t`,
    [stack.projectId, JSON.stringify(events.map((row) => ({ ...row, time: timestampOf(row.at) })))],
  );
  await stack.pool.query(
    `with row as (select (row->>'id')::uuid as id, (row->>'time')::timestamptz as moment
       from jsonb_array_elements($2::jsonb) row),
     added as (insert into persons (team_id, id, created_at, updated_at) select $1, id, moment, moment from row)
     insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
     select $1, id::text, id, moment from row`,
    [stack.projectId, JSON.stringify(persons.map((row) => ({ ...row, time: timestampOf(row.at) })))],
  );
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await posthog.close();
  await stack.stop();
});

/** Writes what PostHog would have exported of the rows, a file of JSON lines for each interval, and returns their ids. */
async function exportLikePosthog({ json, seam, before, selects, column, prefix }: Case, comments: string) {
  const printed = new RegExp(`${String(json.id)}/ \\{"end_at": "([^"]+)"\\}`).exec(comments)?.[1];
  const stopped = json.paused === true ? (json.last_paused_at as string) : printed;
  if (stopped === undefined) throw new Error(`Nothing says where ${String(json.name)} stops.`);
  const rows = json.model === 'persons' ? persons : events;
  const intervals = posthogIntervals(
    { ...(json as { interval: string }), end_at: stopped },
    new Date(seam - before),
    now,
  );
  const ids: string[] = [];
  for (const { start, end } of intervals) {
    const inside = rows.filter((row) => row.at >= start * 1_000 && row.at < end * 1_000 && selects(row));
    const name = [start, end].map((time) => iso(time).replace('.000Z', '+00:00')).join('-');
    ids.push(...inside.map(({ id }) => id));
    await stack.bucket.client.send(
      new PutObjectCommand({
        Bucket: stack.bucket.bucket,
        Key: `${prefix}/${name}.jsonl`,
        Body: inside.map(({ id }) => `${JSON.stringify({ [column]: id })}\n`).join(''),
      }),
    );
  }
  return { ids, first: (intervals[0]?.start ?? 0) * 1_000 };
}

/** The ids in the files of the current manifests of an export. */
async function exportedIds(id: string, { column }: Case): Promise<string[]> {
  const runs = (await stack.runs(id)).filter(({ status }) => status === 'Completed');
  const ids: string[] = [];
  for (const key of new Set(runs.map(({ manifest_key }) => manifest_key ?? ''))) {
    const { files } = await readManifest(stack.bucket, key);
    const isParquet = files.some((file) => file.key.endsWith('.parquet'));
    const rows = isParquet
      ? (await Promise.all(files.map((file) => parquetRows(file.key)))).flat()
      : await exportedRows(stack.bucket, key);
    ids.push(...rows.map((row) => String(row[column])));
  }
  return ids;
}

async function parquetRows(key: string): Promise<Record<string, unknown>[]> {
  const bytes = await readObject(stack.bucket, key);
  const file = new Uint8Array(bytes).buffer;
  return parquetReadObjects({ file, compressors });
}

describe('batch exports that move from PostHog', () => {
  it('have every row of the source exactly once in the files of both products', async () => {
    const environment = {
      EXPORTD_BASE_URL: stack.baseUrl,
      EXPORTD_API_KEY: stack.key,
      POSTHOG_API_KEY: posthogKey,
      AWS_ACCESS_KEY_ID: stack.bucket.accessKeyId,
      AWS_SECRET_ACCESS_KEY: stack.bucket.secretAccessKey,
    };
    const project = ['--url', posthog.endpoint, '--project', String(team)];
    const imported = await exportd(
      environment,
      'import',
      'posthog',
      ...project,
      '--seam',
      iso(now.getTime() - 30 * day),
    );
    expect([imported.code, imported.stderr]).toEqual([0, '']);
    expect(posthog.received.every(({ method }) => method === 'GET')).toBe(true);
    const comments = commentsIn(imported.stdout);
    for (const name of ['To Snowflake', 'To BigQuery', 'Sessions'])
      expect(comments).toContain(`- "${name}" (`);

    const file = join(folder, 'exports.yaml');
    writeFileSync(file, imported.stdout);
    const undecided = await exportd(environment, 'apply', '-f', file);
    expect([undecided.code, undecided.stderr]).toEqual([1, expect.stringContaining('endpoint_url')]);
    expect((await stack.call('GET', '/batch_exports/')).body.count).toBe(0);
    writeFileSync(file, imported.stdout.replace('to be filled in', stack.bucket.endpoint));
    const applied = await exportd(environment, 'apply', '-f', file);
    expect([applied.code, applied.stderr]).toEqual([0, '']);
    expect(applied.stdout).toContain('5 to create, 0 to update, 0 to delete, 0 unchanged.');

    const { body } = await stack.call('GET', '/batch_exports/');
    const created = new Map(
      (body.results as { id: string; name: string }[]).map(({ id, name }) => [name, id]),
    );
    const before = await Promise.all(cases.map((one) => exportLikePosthog(one, comments)));
    for (const { json } of cases) {
      const [, ofExport = ''] = comments.split(`${JSON.stringify(json.name)}, `);
      const command = /exportd (export backfill <id> .*--only missing)/.exec(ofExport)?.[1];
      if (command === undefined) throw new Error(`No backfill of ${String(json.name)} is printed.`);
      const id = created.get(String(json.name)) ?? '';
      const words = command.replace('<id>', id).replace('<now>', now.toISOString()).split(' ');
      const started = await exportd(environment, ...words);
      expect([started.code, started.stderr]).toEqual([0, '']);
    }
    for (const id of created.values())
      await waitFor(async () => {
        const { results } = (await stack.call('GET', `/batch_exports/${id}/backfills/`)).body;
        return (results as { status: string }[]).every(({ status }) => status === 'Completed');
      }, 'the backfill is completed');

    for (const [index, one] of cases.entries()) {
      const id = created.get(String(one.json.name)) ?? '';
      const old = before[index];
      const here = await exportedIds(id, one);
      expect(new Set([...(old?.ids ?? []), ...here]).size).toBe((old?.ids.length ?? 0) + here.length);
      const rows = (one.json.model === 'persons' ? persons : events).filter(one.selects);
      const owed = rows.filter(({ at }) => at >= (old?.first ?? 0) && at < one.until * 1_000);
      // A later interval of a schedule can have ended meanwhile.
      const later = new Set(rows.filter(({ at }) => at >= one.until * 1_000).map((row) => row.id));
      const both = [...(old?.ids ?? []), ...here].filter((row) => !later.has(row)).sort();
      expect([one.json.name, both]).toEqual([one.json.name, owed.map((row) => row.id).sort()]);
      expect([old?.ids.length, here.length]).not.toContain(0);
      // The files of both are below one prefix, and none replaces another.
      const keys = await keysUnder(stack.bucket, `${one.prefix}/`);
      expect(keys.filter((key) => key.includes('+00:00')).length).toBeGreaterThan(1);
    }
  });
});
