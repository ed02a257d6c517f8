import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endRun } from '../../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../../src/decisions/run_recorder.ts';
import type { Overview, OverviewItem } from '../../../src/http/console/pages/schema.ts';
import { createCommander, quickPolicies } from '../../decisions/commander.ts';
import { createSimulatedRuns } from '../../decisions/simulated_runs.ts';
import { minuteAgo } from '../../setup/minutes.ts';
import { openApiHarness, type ApiHarness } from '../api_harness.ts';
import { createLaggingExport } from '../lagging_export.ts';

let api: ApiHarness;
let ids: Readonly<Record<'failing' | 'held' | 'behind' | 'exported' | 'paused', string>>;

const policies = quickPolicies();

beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1000' });
  const recorder = createRunRecorder(api.journal);
  const runs = createSimulatedRuns(api.journal, recorder, createCommander(api.journal, policies));
  /** A paused export with a backfill of three minutes. Returns its runs, oldest interval first. */
  const backfilled = async (name: string): Promise<{ id: string; own: string[] }> => {
    const id = await createLaggingExport(api, minuteAgo(0), { name, paused: true });
    await api.call('POST', `batch_exports/${id}/backfill`, {
      start_at: minuteAgo(3).toISOString(),
      end_at: minuteAgo(0).toISOString(),
    });
    const { body } = await api.call('GET', `batch_exports/${id}/runs/?ordering=data_interval_start`);
    return { id, own: (body.results as { id: string }[]).map((run) => run.id) };
  };
  const publish = async (run: string, rows: number) =>
    runs.publish(run, await runs.start(run), `${run}.jsonl`, rows);

  const exported = await backfilled('Exported');
  for (const [index, run] of exported.own.entries()) await publish(run, index + 1);
  const failing = await backfilled('Failing');
  const [first = '', second = '', third = ''] = failing.own;
  await publish(first, 3);
  await publish(second, 3);
  await runs.start(third);
  await endRun(api.journal, policies, third, { status: 'Failed', latest_error: 'AccessDenied: no.' });
  const held = await backfilled('Held');
  const [heldFirst = '', heldSecond = '', heldThird = ''] = held.own;
  await runs.start(heldFirst);
  await runs.hold(heldFirst, policies);
  await publish(heldSecond, 1);
  await publish(heldThird, 1);
  const behind = await createLaggingExport(api, minuteAgo(30), { name: 'Behind' });
  const paused = await createLaggingExport(api, minuteAgo(0), { name: 'Paused', paused: true });
  ids = { failing: failing.id, held: held.id, behind, exported: exported.id, paused };
});
afterAll(() => api.close());

async function overview(query = ''): Promise<Overview> {
  const { status, text } = await api.call('GET', `console/overview/${query}`);
  expect(status).toBe(200);
  return JSON.parse(text) as Overview;
}

const itemOf = async (name: keyof typeof ids): Promise<OverviewItem | undefined> =>
  (await overview()).exports.find(({ id }) => id === ids[name]);

describe('the overview', () => {
  it('lists every export, those that need attention first', async () => {
    const { exports } = await overview();
    const listed = exports.map(({ name, condition }) => [name, condition.cause]);
    expect(listed.slice(0, 3)).toEqual([
      ['Failing', 'access_denied'],
      ['Held', 'held'],
      ['Behind', 'not_started'],
    ]);
    // A minute that ended between their pauses is due for the second one.
    expect(listed.slice(3).toSorted()).toEqual([
      ['Exported', 'paused'],
      ['Paused', 'paused'],
    ]);
  });

  it('counts all exports and those that need attention, whatever is shown', async () => {
    const { exports, ...counts } = await overview('?limit=1');
    expect([exports.map(({ name }) => name), counts]).toEqual([
      ['Failing'],
      { now: counts.now, count: 5, needing_attention: 3, found: 5, incidents: [] },
    ]);
  });

  it('finds exports by a part of their name, destination or id', async () => {
    const namesOf = async (search: string) => {
      const { exports, found } = await overview(`?search=${encodeURIComponent(search)}`);
      expect(found).toBe(exports.length);
      return exports.map(({ name }) => name);
    };
    expect(await namesOf(' hELD ')).toEqual(['Held']);
    expect(await namesOf('s3 BUCKET')).toHaveLength(5);
    expect(await namesOf(ids.behind)).toEqual(['Behind']);
    expect(await namesOf('50%')).toEqual([]);
  });

  it('rejects a limit that is too high', async () => {
    const { status, body } = await api.call('GET', 'console/overview/?limit=1001');
    expect([status, body.attr]).toEqual([400, 'limit']);
  });

  it('has the newest intervals, their length, and the error of what failed', async () => {
    const item = await itemOf('failing');
    expect(item).toMatchObject({
      model: 'events',
      interval: 'every 1 minutes',
      destination: 'S3 bucket',
      paused: true,
      condition: {
        severity: 'error',
        summary: '1 interval failed and is not retried automatically: AccessDenied: no.',
      },
      next_run_at: null,
      fresh_until: minuteAgo(1).toISOString(),
    });
    expect(item?.cells.start).toBe(minuteAgo(3).toISOString());
    // Minutes that ended since this file started: due until the export was paused, and paused after that.
    expect(item?.cells.statuses).toMatch(/^eegd*p*$/);
    expect(item?.cells.lengths).toEqual([[60, item?.cells.statuses.length]]);
  });

  it('adds the rows and bytes of the last day', async () => {
    const item = await itemOf('exported');
    const sum = (values: readonly number[] = []) => values.reduce((total, value) => total + value, 0);
    expect([item?.rows_by_hour.length, sum(item?.rows_by_hour), sum(item?.bytes_by_hour)]).toEqual([
      24, 6, 180,
    ]);
  });

  it('says how far behind an export is, and when its next interval ends', async () => {
    const item = await itemOf('behind');
    expect(item?.cells.statuses).toMatch(/^d{30,}$/);
    expect(item?.behind_intervals).toBe(item?.cells.statuses.length);
    expect(Date.parse(item?.next_run_at ?? '')).toBeGreaterThan(Date.parse(minuteAgo(0).toISOString()));
    expect(item?.fresh_until).toBeNull();
  });

  it('shows nothing of another project', async () => {
    const { key } = await api.newKey(api.otherProjectId);
    const { body } = await api.call(
      'GET',
      `/api/projects/${api.otherProjectId}/console/overview/`,
      undefined,
      { authorization: `Bearer ${key}` },
    );
    expect(body.exports).toEqual([]);
  });
});
