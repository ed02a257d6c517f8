import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createExportBehind, minuteAgo } from './behind.ts';
import { openFacade, type Facade } from './facade.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade({ EXPORTD_MAX_BACKFILL_INTERVALS: '50', EXPORTD_COMMAND_TIMEOUT_MS: '500' });
});
afterAll(() => facade.close());

/** Pretends that the pause was recorded at another time: the journal's clock cannot be turned back. */
const pauseWasRecorded = (id: string, at: string) =>
  facade.database.pool.query(
    `update exportd.stream_states set state = jsonb_set(state, '{paused_recorded_at}', to_jsonb($2::text))
     where stream_id = $1`,
    [id, at],
  );

/** An export of every month, made at this month's beginning and paused for so many minutes. */
async function createPausedFor(minutes: number): Promise<{ id: string; monthStart: string }> {
  const monthStart = `${new Date().toISOString().slice(0, 7)}-01T00:00:00.000Z`;
  const elapsed = (Date.parse(minuteAgo(0)) - Date.parse(monthStart)) / 60_000;
  const id = await createExportBehind(facade, elapsed, { interval: 'month', paused: true });
  await pauseWasRecorded(id, minuteAgo(minutes));
  return { id, monthStart };
}

async function eventsOf(id: string, type: string): Promise<Record<string, unknown>[]> {
  const { rows } = await facade.database.pool.query<{ data: Record<string, unknown> }>(
    `select data from exportd.journal_events where stream_id = $1 and event_type = $2 order by stream_version`,
    [id, type],
  );
  return rows.map(({ data }) => data);
}

describe('a change of interval', () => {
  it('in the request that ends a pause bridges from the interval that was going on', async () => {
    const { id, monthStart } = await createPausedFor(10);
    const before = minuteAgo(0);
    const answer = await facade.call('PATCH', `batch_exports/${id}`, {
      interval: 'every 1 minutes',
      paused: false,
    });
    expect([answer.status, answer.body.paused]).toEqual([200, false]);
    expect(await eventsOf(id, 'IntervalsSkipped')).toEqual([]);
    await facade.step(id);
    const [bridge] = await eventsOf(id, 'IntervalScheduled');
    expect(bridge).toMatchObject({ start: monthStart });
    expect([before, minuteAgo(0)]).toContain(bridge?.end);
  });

  it('during a pause is made up for in the boundaries of both definitions', async () => {
    const { id, monthStart } = await createPausedFor(10);
    const changed = await facade.call('PATCH', `batch_exports/${id}`, { interval: 'every 1 minutes' });
    expect(changed.status).toBe(200);
    const answer = await facade.call('POST', `batch_exports/${id}/unpause`, { backfill: true });
    expect(answer.status).toBe(200);
    const [skipped] = await eventsOf(id, 'IntervalsSkipped');
    expect(skipped).toMatchObject({ start: monthStart, reason: 'paused' });
    const { body } = await facade.call('GET', `batch_exports/${id}/backfills`);
    const [backfill] = body.results as { start_at: string; end_at: string }[];
    expect(backfill).toMatchObject({ start_at: monthStart, end_at: skipped?.end });
    const runs = await facade.call('GET', `batch_exports/${id}/runs/?ordering=data_interval_start`);
    const [first] = runs.body.results as { data_interval_start: string; data_interval_end: string }[];
    expect(first?.data_interval_start).toBe(monthStart);
    expect(Date.parse(first?.data_interval_end ?? '')).toBeGreaterThan(Date.parse(minuteAgo(3)));
  });

  it('to shorter ones does not make an update that is still to be decided fit no longer', async () => {
    const id = await facade.createExport({ interval: 'month', offset_day: 0, paused: true });
    facade.mode = 'silent';
    const later = facade.call('PATCH', `batch_exports/${id}`, { offset_day: 27 });
    const last = facade.call('PATCH', `batch_exports/${id}`, { interval: 'week' });
    expect((await Promise.all([later, last])).map(({ status }) => status)).toEqual([202, 202]);
    facade.mode = 'decide';
    await facade.step(id);
    const { body } = await facade.call('GET', `batch_exports/${id}`);
    expect(['week', 0]).toEqual([body.interval, body.offset_day]);
  });
});

describe('the end of a pause that was too long to be made up for', () => {
  it('is refused by the member that asks for it, and goes without it', async () => {
    const id = await createExportBehind(facade, 60, { paused: true });
    await pauseWasRecorded(id, minuteAgo(55));
    const refused = await facade.call('POST', `batch_exports/${id}/unpause`, { backfill: true });
    expect([refused.status, refused.body.attr]).toEqual([400, 'backfill']);
    expect((await facade.call('GET', `batch_exports/${id}`)).body.paused).toBe(true);
    expect((await facade.call('POST', `batch_exports/${id}/unpause`)).status).toBe(200);
  });
});
