import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hourAgo } from '../setup/hours.ts';
import { currentMinute, minuteAgo } from '../setup/minutes.ts';
import { createLaggingExport } from './lagging_export.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_BACKFILL_INTERVALS: '50', EXPORTD_COMMAND_TIMEOUT: '500ms' });
});
afterAll(() => api.close());

/** Pretends that the pause was recorded at another time: the journal's clock cannot be turned back. */
const pauseWasRecorded = (id: string, at: Date) =>
  api.database.pool.query(
    `update exportd.stream_states set state = jsonb_set(state, '{paused_recorded_at}', to_jsonb($2::text))
     where stream_id = $1`,
    [id, at.toISOString()],
  );

/** An export of every day, made when the one that goes on began, twelve hours ago, and paused for so many minutes. */
async function createPausedFor(minutes: number): Promise<{ id: string; dayStart: string }> {
  const dayStart = hourAgo(12);
  const id = await createLaggingExport(api, dayStart, {
    interval: 'day',
    offset_hour: dayStart.getUTCHours(),
    paused: true,
  });
  await pauseWasRecorded(id, minuteAgo(minutes));
  return { id, dayStart: dayStart.toISOString() };
}

async function eventsOf(id: string, type: string): Promise<Record<string, unknown>[]> {
  const { rows } = await api.database.pool.query<{ data: Record<string, unknown> }>(
    `select data from exportd.journal_events where stream_id = $1 and event_type = $2 order by stream_version`,
    [id, type],
  );
  return rows.map(({ data }) => data);
}

describe('a change of interval', () => {
  it('in the request that ends a pause bridges from the interval that was going on', async () => {
    const { id, dayStart } = await createPausedFor(10);
    const before = currentMinute();
    const response = await api.call('PATCH', `batch_exports/${id}`, {
      interval: 'every 1 minutes',
      paused: false,
    });
    expect([response.status, response.body.paused]).toEqual([200, false]);
    expect(await eventsOf(id, 'IntervalsSkipped')).toEqual([]);
    await api.step(id);
    const [bridge] = await eventsOf(id, 'IntervalScheduled');
    expect(bridge).toMatchObject({ start: dayStart });
    expect([before, currentMinute()].map((minute) => minute.toISOString())).toContain(bridge?.end);
  });

  it('during a pause is made up for in the boundaries of both definitions', async () => {
    const { id, dayStart } = await createPausedFor(10);
    const changed = await api.call('PATCH', `batch_exports/${id}`, { interval: 'every 1 minutes' });
    expect(changed.status).toBe(200);
    const response = await api.call('POST', `batch_exports/${id}/unpause`, { backfill: true });
    expect(response.status).toBe(200);
    const [skipped] = await eventsOf(id, 'IntervalsSkipped');
    expect(skipped).toMatchObject({ start: dayStart, reason: 'paused' });
    const { body } = await api.call('GET', `batch_exports/${id}/backfills`);
    const [backfill] = body.results as { start_at: string; end_at: string }[];
    expect(backfill).toMatchObject({ start_at: dayStart, end_at: skipped?.end });
    const runs = await api.call('GET', `batch_exports/${id}/runs/?ordering=data_interval_start`);
    const [first] = runs.body.results as { data_interval_start: string; data_interval_end: string }[];
    expect(first?.data_interval_start).toBe(dayStart);
    expect(Date.parse(first?.data_interval_end ?? '')).toBeGreaterThan(minuteAgo(3).getTime());
  });

  it('to shorter ones does not make an update that is still to be decided fit no longer', async () => {
    const id = await api.createExport({ interval: 'month', offset_day: 0, paused: true });
    api.mode = 'silent';
    const later = await api.call('PATCH', `batch_exports/${id}`, { offset_day: 27 });
    const last = await api.call('PATCH', `batch_exports/${id}`, { interval: 'week' });
    expect([later.status, last.status]).toEqual([202, 202]);
    api.mode = 'decide';
    await api.step(id);
    const { body } = await api.call('GET', `batch_exports/${id}`);
    expect(['week', 0]).toEqual([body.interval, body.offset_day]);
  });
});

describe('the end of a pause that was too long to be made up for', () => {
  it('is refused by the member that asks for it, and goes without it', async () => {
    const id = await createLaggingExport(api, minuteAgo(60), { paused: true });
    await pauseWasRecorded(id, minuteAgo(55));
    const rejected = await api.call('POST', `batch_exports/${id}/unpause`, { backfill: true });
    expect([rejected.status, rejected.body.attr]).toEqual([400, 'backfill']);
    expect((await api.call('GET', `batch_exports/${id}`)).body.paused).toBe(true);
    expect((await api.call('POST', `batch_exports/${id}/unpause`)).status).toBe(200);
  });
});
