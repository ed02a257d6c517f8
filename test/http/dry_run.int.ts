import { afterEach, describe, expect, it } from '@jest/globals';
import { minuteAgo } from '../setup/minutes.ts';
import { exportBody, openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
afterEach(() => api.close());

const paths = ['backfill', 'backfills'];

/** Inserts one event in the middle of each of the given minutes before now. */
const insertEvents = (minutes: readonly number[], event: string, teamId = api.projectId) =>
  api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), $2, 'person', '{}', moment, moment
     from unnest($3::timestamptz[]) start cross join lateral (select start + interval '30 seconds' as moment) m`,
    [teamId, event, minutes.map(minuteAgo)],
  );

async function createPaused(
  config: Readonly<Record<string, unknown>> = {},
  more: object = {},
): Promise<string> {
  const { destination } = exportBody();
  return api.createExport({
    paused: true,
    destination: { ...destination, config: { ...destination.config, ...config } },
    ...more,
  });
}

describe('a dry run of a backfill', () => {
  it('returns the whole intervals and the number of rows, and starts nothing', async () => {
    api = await openApiHarness();
    await insertEvents([5, 4, 4, 3], '$pageview');
    await insertEvents([4], '$autocapture');
    await insertEvents([4], '$pageview', api.otherProjectId);
    await insertEvents([9, 2], '$pageview');
    const id = await createPaused({ exclude_events: ['$autocapture'] });
    const before = await api.call('GET', `batch_exports/${id}`);
    const start = minuteAgo(5).getTime();
    const range = {
      start_at: new Date(start + 10_000).toISOString(),
      end_at: new Date(start + 130_000).toISOString(),
    };
    for (const path of paths) {
      const response = await api.call('POST', `batch_exports/${id}/${path}`, { ...range, dry_run: true });
      expect(response.status).toBe(200);
      expect(response.body).toEqual({
        dry_run: true,
        start_at: new Date(start).toISOString(),
        end_at: new Date(start + 180_000).toISOString(),
        intervals: 3,
        rows: 4,
        seconds: null,
        detail: null,
      });
    }
    const { rows } = await api.database.pool.query<{ name: string }>('select name from exportd.commands');
    expect(rows.map(({ name }) => name)).toEqual(['create']);
    expect((await api.call('GET', `batch_exports/${id}/backfills`)).body.count).toBe(0);
    expect((await api.call('GET', `batch_exports/${id}`)).body.last_updated_at).toBe(
      before.body.last_updated_at,
    );
  });

  it('takes times without seconds, in any offset', async () => {
    api = await openApiHarness();
    await insertEvents([4], '$pageview');
    const id = await createPaused();
    const start_at = minuteAgo(5).toISOString();
    const end_at = minuteAgo(3).toISOString();
    for (const zone of ['Z', '+00:00']) {
      const range = { start_at: start_at.slice(0, 16) + zone, end_at: end_at.slice(0, 16) + zone };
      const { status, body } = await api.call('POST', `batch_exports/${id}/backfill`, {
        ...range,
        dry_run: true,
      });
      expect([status, body]).toEqual([
        200,
        expect.objectContaining({ start_at, end_at, intervals: 2, rows: 1 }),
      ]);
    }
  });

  it('counts persons for an export of persons', async () => {
    api = await openApiHarness();
    const id = await createPaused({}, { model: 'persons' });
    await api.database.pool.query(
      `with person as (insert into persons (team_id, id, properties, created_at, updated_at)
         values ($1, gen_random_uuid(), '{}', $2, $2) returning id)
       insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
       select $1, 'ada-' || n, id, $2 from person, generate_series(1, 2) n`,
      [api.projectId, minuteAgo(4)],
    );
    const body = { start_at: minuteAgo(5), end_at: minuteAgo(2), dry_run: true };
    expect((await api.call('POST', `batch_exports/${id}/backfill`, body)).body).toMatchObject({ rows: 2 });
  });

  it('is rejected as the backfill would be', async () => {
    api = await openApiHarness({ EXPORTD_MAX_BACKFILL_INTERVALS: '50' });
    const minutely = await createPaused();
    const monthly = await createPaused({}, { interval: 'month' });
    const rejected: readonly [string, object, number, string | null][] = [
      [minutely, { start_at: minuteAgo(5), end_at: minuteAgo(5) }, 400, 'start_at'],
      [minutely, { start_at: minuteAgo(60), end_at: minuteAgo(1) }, 400, 'start_at'],
      [minutely, { start_at: minuteAgo(5), end_at: minuteAgo(-5) }, 400, 'end_at'],
      [minutely, { start_at: '0001-01-01T00:00:00Z', end_at: minuteAgo(5) }, 400, 'start_at'],
      [minutely, { start_at: minuteAgo(5) }, 400, 'end_at'],
      [minutely, { start_at: minuteAgo(5), end_at: 'yesterday' }, 400, 'end_at'],
      [monthly, { start_at: minuteAgo(1), end_at: new Date(Date.now() - 1).toISOString() }, 400, 'end_at'],
      [api.key.slice(0, 8), { start_at: minuteAgo(5), end_at: minuteAgo(4) }, 404, null],
    ];
    for (const path of paths)
      for (const [id, body, status, attr] of rejected) {
        const dry = await api.call('POST', `batch_exports/${id}/${path}`, { ...body, dry_run: true });
        const wet = await api.call('POST', `batch_exports/${id}/${path}`, body);
        expect([dry.status, dry.body.attr]).toEqual([status, attr]);
        expect(dry.text).toBe(wet.text);
      }
  });

  it('returns no rows when the source takes too long to count them', async () => {
    api = await openApiHarness({ EXPORTD_DRY_RUN_TIMEOUT: '300ms' });
    const id = await createPaused();
    const connection = await api.database.pool.connect();
    try {
      await connection.query('begin');
      await connection.query('lock table events in access exclusive mode');
      const body = { start_at: minuteAgo(5), end_at: minuteAgo(2), dry_run: true };
      const response = await api.call('POST', `batch_exports/${id}/backfill`, body);
      expect(response.status).toBe(200);
      expect(response.body).toMatchObject({
        intervals: 3,
        rows: null,
        detail: expect.stringContaining('0.3'),
      });
    } finally {
      await connection.query('rollback');
      connection.release();
    }
  });

  it.each([
    ['cannot be reached', { SOURCE_DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none' }, 'reached'],
    ['lacks the relation', { EXPORTD_EVENTS_RELATION: 'public.missing' }, 'missing'],
  ])('is 503 when the source %s', async (_, settings, word) => {
    api = await openApiHarness(settings);
    const id = await createPaused();
    const body = { start_at: minuteAgo(5), end_at: minuteAgo(2), dry_run: true };
    const response = await api.call('POST', `batch_exports/${id}/backfills`, body);
    expect([response.status, response.body.code]).toEqual([503, 'source_unreachable']);
    expect(response.body.detail).toContain(word);
  });

  it('is described in the schema', async () => {
    api = await openApiHarness();
    const { paths: described } = (await api.call('GET', '/api/schema')).body as {
      paths: Record<string, { post?: { responses: Record<string, unknown> } }>;
    };
    for (const path of paths) {
      const found = Object.entries(described).filter(([name]) => name.endsWith(`/${path}`));
      expect(found.length).toBeGreaterThan(0);
      for (const [, operations] of found)
        expect(JSON.stringify(operations.post?.responses['200'])).toContain('BatchExportDryRun');
    }
  });
});
