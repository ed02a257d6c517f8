import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { minutesAgo } from '../decisions/commander.ts';
import { exportBody, openApiHarness, type ApiHarness } from './api_harness.ts';
import { changeStored } from '../setup/change_stored.ts';

let api: ApiHarness;
let broken: string;
let healthy: string;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_BACKFILL_CONCURRENCY: '100' });
});
// The exports of former cases stay as they are: none may cost another anything, not even its creation.
beforeEach(async () => {
  broken = await api.createExport();
  healthy = await api.createExport();
});
afterAll(() => api.close());

interface Item {
  readonly id: string;
  readonly lag: object | null;
  readonly latest_runs: readonly { readonly id: string }[];
}

async function list(path: string): Promise<readonly Item[]> {
  const { status, body } = await api.call('GET', path);
  expect(status).toBe(200);
  return body.results as Item[];
}

/** Stores what a newer version may have stored. */
const store = (statement: string) => changeStored(api.database.pool, statement, [broken]);

const backfill = (from: number, to: number) =>
  api.call('POST', `batch_exports/${broken}/backfill`, {
    start_at: minutesAgo(from),
    end_at: minutesAgo(to),
  });

describe('an export that this version cannot read', () => {
  it.each([
    [
      'the interval of its schedule',
      `update exportd.stream_states set state = jsonb_set(state, '{revisions,0,interval}', '"quarter"') where stream_id = $1`,
    ],
    ['its whole state', `update exportd.stream_states set state = '{"status": "live"}' where stream_id = $1`],
  ])('is listed without its lag, and all others with theirs: %s', async (_what, statement) => {
    await store(statement);
    const exports = await list('batch_exports/');
    expect(exports.find(({ id }) => id === broken)?.lag).toBeNull();
    expect(exports.find(({ id }) => id === healthy)?.lag).toMatchObject({ gaps: [] });
    expect((await api.call('GET', `batch_exports/${broken}`)).body).toMatchObject({ id: broken, lag: null });
  });

  it.each([
    ['its model', `update exportd.batch_exports set model = 'sessions' where id = $1`],
    [
      'its query',
      `update exportd.destination_configs set row_query = '{"version": 2}' where batch_export_id = $1`,
    ],
  ])('is left out of the list, and says so when it is requested: %s', async (_what, statement) => {
    await store(statement);
    const ids = (await list('batch_exports/')).map(({ id }) => id);
    expect(ids).toContain(healthy);
    expect(ids).not.toContain(broken);
    const { status, body } = await api.call('GET', `batch_exports/${broken}`);
    expect(status).toBe(500);
    expect(body).toMatchObject({ code: 'unreadable' });
    expect(String(body.detail)).toContain(`batch export ${broken}`);
  });

  it.each([
    [
      'its schedule',
      `update exportd.stream_states set state = jsonb_set(state, '{revisions,0,interval}', '"quarter"') where stream_id = $1`,
    ],
    [
      'its config',
      `update exportd.destination_configs set config = config - 'prefix' where batch_export_id = $1`,
    ],
  ])('keeps no other from being created with the same prefix: %s', async (_what, statement) => {
    const { body } = await api.call('GET', `batch_exports/${broken}`);
    await store(statement);
    const { destination } = body as { destination: { config: { prefix: string } } };
    const fields = exportBody();
    const config = { ...fields.destination.config, prefix: destination.config.prefix };
    const created = await api.call('POST', 'batch_exports', {
      ...fields,
      destination: { type: 'S3', config },
    });
    expect(created.status).toBe(201);
  });

  it('keeps its config if its destination is unknown', async () => {
    await store(`update exportd.batch_exports set destination_type = 'Tape' where id = $1`);
    expect((await list('batch_exports/')).map(({ id }) => id)).toEqual(
      expect.arrayContaining([broken, healthy]),
    );
  });
});

describe.each([
  ['runs', 'batch_export_runs'],
  ['backfills', 'backfills'],
])('an item of the list of %s that this version cannot read', (path, table) => {
  it('is left out, and the others are listed', async () => {
    await backfill(5, 3);
    await backfill(30, 29);
    const before = await list(`batch_exports/${broken}/${path}/`);
    await store(
      `update exportd.${table} set status = 'Waiting' where id = (
         select id from exportd.${table} where batch_export_id = $1 limit 1)`,
    );
    expect(await list(`batch_exports/${broken}/${path}/`)).toHaveLength(before.length - 1);
  });
});

it('a run that this version cannot read is left out of the newest runs of its export', async () => {
  await backfill(5, 1);
  const newest = (await list('batch_exports/')).find(({ id }) => id === broken)?.latest_runs ?? [];
  await store(
    `update exportd.batch_export_runs set status = 'Waiting' where id = (
       select id from exportd.batch_export_runs where batch_export_id = $1 order by position desc limit 1)`,
  );
  const exports = await list('batch_exports/');
  const runs = exports.find(({ id }) => id === broken)?.latest_runs ?? [];
  expect(runs.map(({ id }) => id)).toEqual(newest.slice(1).map(({ id }) => id));
});
