import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { writeLogLine } from '../../src/journal/journal.ts';
import { rebuild } from '../../src/projections/registry.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { minutesAgo } from '../decisions/commander.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { withinOneMinute } from '../setup/minutes.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';
import { createCircuitStore } from '../../src/failures/circuit_store.ts';

interface Page<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: Item[];
}
interface Run {
  readonly id: string;
  readonly status: string;
  readonly data_interval_start: string;
  readonly created_at: string;
  readonly backfill_id: string | null;
}

interface Waiting {
  readonly id?: string;
  readonly status_detail?: string | null;
  readonly latest_error?: string | null;
}

let api: ApiHarness;
let id: string;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_BACKFILL_CONCURRENCY: '100' });
  id = await api.createExport();
  // Two backfills, the older intervals last, so that runs are not created in the order of their intervals.
  await api.call('POST', `batch_exports/${id}/backfill`, {
    start_at: minutesAgo(5),
    end_at: minutesAgo(1),
  });
  await api.call('POST', `batch_exports/${id}/backfill`, {
    start_at: minutesAgo(30),
    end_at: minutesAgo(20),
  });
});
afterAll(() => api.close());

async function page<Item>(path: string): Promise<Page<Item>> {
  const { status, text } = await api.call('GET', path);
  expect(status).toBe(200);
  return JSON.parse(text) as Page<Item>;
}

const local = (address: string | null) => String(address).replace('http://localhost', '');

async function walk(query: string): Promise<Page<Run>[]> {
  const pages = [await page<Run>(`batch_exports/${id}/runs/?limit=4&${query}`)];
  for (;;) {
    const next = pages.at(-1)?.next ?? null;
    if (next === null) return pages;
    pages.push(await page<Run>(local(next)));
  }
}

describe('the runs of an export', () => {
  it.each([
    ['created_at', (run: Run) => run.created_at, 1],
    ['-created_at', (run: Run) => run.created_at, -1],
    ['data_interval_start', (run: Run) => run.data_interval_start, 1],
    ['-data_interval_start', (run: Run) => run.data_interval_start, -1],
  ] as const)('are paged by cursors, forwards and backwards, ordered by %s', async (ordering, key, sign) => {
    const pages = await walk(`ordering=${ordering}`);
    const runs = pages.flatMap(({ results }) => results);
    expect(pages.length).toBeGreaterThan(2);
    expect(runs).toHaveLength(pages[0]?.count ?? 0);
    expect(new Set(runs.map((run) => run.id)).size).toBe(runs.length);
    const keys = runs.map(key);
    expect(keys).toEqual([...keys].sort().map((_, index, all) => all.at(sign === 1 ? index : -1 - index)));
    expect(pages[0]?.previous).toBeNull();
    const back = [];
    for (let at = pages.at(-1); at?.previous;) {
      at = await page<Run>(local(at.previous));
      back.unshift(at.results);
    }
    expect(back).toEqual(pages.slice(0, -1).map(({ results }) => results));
  });

  it('are filtered by status and creation time', async () => {
    const all = await page<Run>(`batch_exports/${id}/runs/`);
    const [newest, ...older] = all.results;
    await api.call('POST', `batch_exports/${id}/runs/${newest?.id ?? ''}/cancel/`);
    const cancelled = await page<Run>(`batch_exports/${id}/runs/?status=Cancelled&status=Failed`);
    expect(cancelled.results.map((run) => run.id)).toEqual([newest?.id]);
    const at = encodeURIComponent(newest?.created_at ?? '');
    const before = await page<Run>(`batch_exports/${id}/runs/?before=${at}`);
    expect(before.results.map((run) => run.id)).toEqual(
      older.filter((run) => run.created_at < (newest?.created_at ?? '')).map((run) => run.id),
    );
    expect((await page<Run>(`batch_exports/${id}/runs/?after=${at}`)).results).toEqual([]);
  });

  it('are filtered by their intervals, also by relative times, and reject what would be ignored', async () => {
    const all = await page<Run>(`batch_exports/${id}/runs/?ordering=data_interval_start`);
    const starts = async (query: string) =>
      (await page<Run>(`batch_exports/${id}/runs/?ordering=data_interval_start&${query}`)).results.map(
        (run) => run.data_interval_start,
      );
    const every = all.results.map((run) => run.data_interval_start);
    const third = every[2] ?? '';
    expect(await starts(`start=${third}`)).toEqual(every.slice(2));
    expect(await starts(`end=${third}`)).toEqual(every.slice(0, 2));
    expect(await starts('start=-1h&end=-10M')).toEqual(every.filter((start) => start < minutesAgo(10)));
    expect(await starts('after=-1h&start=-2d')).toEqual(every);
    expect(await starts('before=-1h')).toEqual([]);
    const made = {
      schedule: await starts('created_by=schedule'),
      backfill: await starts('created_by=backfill'),
    };
    const byBackfill = all.results.filter(({ backfill_id }) => backfill_id !== null);
    expect(made.backfill).toEqual(byBackfill.map((run) => run.data_interval_start));
    expect(made.schedule).toHaveLength(every.length - made.backfill.length);
    for (const [query, attr] of [
      ['start=yesterday', 'start'],
      ['after=-9999999y', 'after'],
      ['finished=1', 'finished'],
      ['created_by=me', 'created_by'],
    ]) {
      const { status, body } = await api.call('GET', `batch_exports/${id}/runs/?${query}`);
      expect([status, body.attr]).toEqual([400, attr]);
    }
  });

  it('include the ten newest in the export', async () => {
    const all = await page<Run>(`batch_exports/${id}/runs/`);
    const { body } = await api.call('GET', `batch_exports/${id}`);
    expect(body.latest_runs).toEqual(all.results.slice(0, 10));
    const one = await api.call('GET', `batch_exports/${id}/runs/${all.results[0]?.id ?? ''}/`);
    expect(one.body).toEqual(all.results[0]);
  });
});

describe('the log of an export', () => {
  it('is newest first, paged, and filtered by level, text, run and time', async () => {
    const run = (await page<Run>(`batch_exports/${id}/runs/?limit=1`)).results[0]?.id ?? null;
    const line = { team_id: api.projectId, batch_export_id: id };
    const { pool } = api.database;
    await writeLogLine(pool, { ...line, run_id: run, level: 'INFO', message: 'Exported 100% of it' });
    await writeLogLine(pool, { ...line, run_id: null, level: 'ERROR', message: 'The Bucket is gone' });
    const messages = async (query: string) =>
      (await page<{ message: string }>(`batch_exports/${id}/logs?${query}`)).results.map(
        ({ message }) => message,
      );

    const [newest] = (await page(`batch_exports/${id}/logs?limit=1`)).results;
    expect(newest).toEqual({
      timestamp: expect.any(String),
      level: 'ERROR',
      message: 'The Bucket is gone',
      instance_id: null,
      log_source_id: id,
    });
    expect(await messages('limit=1&offset=1')).toEqual(['Exported 100% of it']);
    expect(await messages('level=error')).toEqual(['The Bucket is gone']);
    expect(await messages('search=0%25 OF')).toEqual(['Exported 100% of it']);
    expect(await messages('search=%25')).toEqual(['Exported 100% of it']);
    expect(await messages(`run_id=${run ?? ''}&level=info`)).toEqual(['Exported 100% of it']);
    expect(await messages(`after=${minutesAgo(-60)}`)).toEqual([]);
    expect(await messages(`before=${minutesAgo(5)}`)).toEqual([]);
  });
});

describe('a run whose bucket does not respond', () => {
  it('says so wherever it is shown, and nothing once the bucket responds', async () => {
    const { pool } = api.database;
    const waiting = await api.createExport();
    await api.call('POST', `batch_exports/${waiting}/backfill`, {
      start_at: minutesAgo(3),
      end_at: minutesAgo(2),
    });
    const details = async () => {
      const { results: runs } = await page<Waiting>(`batch_exports/${waiting}/runs/?limit=1`);
      const { results: intervals } = await page<Waiting>(
        `batch_exports/${waiting}/intervals/?status=running&limit=1`,
      );
      const { body: run } = await api.call('GET', `batch_exports/${waiting}/runs/${runs[0]?.id}`);
      const { body: batchExport } = await api.call('GET', `batch_exports/${waiting}`);
      const [latest] = batchExport.latest_runs as Waiting[];
      return [runs[0], intervals[0], run, latest].map((shown) => [shown?.status_detail, shown?.latest_error]);
    };
    const { rows } = await pool.query<{ circuit: string }>(
      'select circuit from exportd.destination_configs where batch_export_id = $1',
      [waiting],
    );
    const circuits = createCircuitStore(
      pool,
      s3Settings({ EXPORTD_S3_PROBE_INITIAL: '60s' }),
      createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
    );
    await circuits.open(rows[0]?.circuit ?? '', 'The S3 server did not respond.');
    const open = (await circuits.read(rows[0]?.circuit ?? '')).open;
    const reason = `DestinationUnavailable: The S3 server did not respond, since ${open?.opened_at}, next probe ${open?.next_probe_at}.`;
    const shown = [reason, reason];
    expect(await details()).toEqual([shown, [undefined, reason], shown, shown]);
    await circuits.close(rows[0]?.circuit ?? '');
    expect(await details()).toEqual([
      [null, null],
      [undefined, null],
      [null, null],
      [null, null],
    ]);
  });
});

describe('a rebuild of the read models', () => {
  it('leaves every response identical', async () => {
    // An interval that ends between the responses would add to its lag.
    await api.call('POST', `batch_exports/${id}/pause`);
    const { results } = await page<Run>(`batch_exports/${id}/runs/`);
    const { results: backfills } = await page<{ id: string }>(`batch_exports/${id}/backfills/`);
    const paths = [
      'batch_exports/',
      `batch_exports/${id}`,
      `batch_exports/${id}/runs/?limit=3`,
      `batch_exports/${id}/backfills/`,
      `batch_exports/${id}/logs`,
      ...results.map((run) => `batch_exports/${id}/runs/${run.id}`),
      ...backfills.map((backfill) => `batch_exports/${id}/backfills/${backfill.id}`),
    ];
    const responses = () => Promise.all(paths.map(async (path) => (await api.call('GET', path)).text));
    // What a response says of an export ends with the last whole minute.
    const { result } = await withinOneMinute(async () => {
      const before = await responses();
      await rebuild(api.database.pool);
      return { before, after: await responses() };
    });
    expect(result.after).toEqual(result.before);
  });
});
