import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hourAgo } from '../setup/hours.ts';
import { currentMinute, minuteAgo } from '../setup/minutes.ts';
import { createLaggingExport } from './lagging_export.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';
import { readEvents } from '../journal/read_stream.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_BACKFILL_INTERVALS: '50' });
});
afterAll(() => api.close());

/** Changes when the pause was recorded, since the journal's clock cannot be set back. */
const pauseWasRecorded = (id: string, at: Date) =>
  api.database.pool.query(
    `update exportd.stream_states set state = jsonb_set(state, '{paused_recorded_at}', to_jsonb($2::text))
     where stream_id = $1`,
    [id, at.toISOString()],
  );

/** Creates a daily export whose current interval started twelve hours ago, paused for `minutes`. */
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

const eventsOf = async (id: string, type: string) =>
  (await readEvents(api.database.pool, id, type)).map(({ data }) => data);

describe('a change of interval', () => {
  it('in the request that unpauses bridges from the interval that was current', async () => {
    const { id, dayStart } = await createPausedFor(10);
    const before = currentMinute();
    const response = await api.call('PATCH', `batch_exports/${id}`, {
      interval: 'every 1 minutes',
      paused: false,
    });
    expect([response.status, response.body.paused]).toEqual([200, false]);
    expect(await eventsOf(id, 'IntervalsSkipped')).toEqual([]);
    await api.advanceSchedule(id);
    const [bridge] = await eventsOf(id, 'IntervalScheduled');
    expect(bridge).toMatchObject({ start: dayStart });
    expect([before, currentMinute()].map((minute) => minute.toISOString())).toContain(bridge?.end);
  });

  it('during a pause is backfilled along the boundaries of both definitions', async () => {
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

  it('to a shorter one does not invalidate a pending update', async () => {
    const id = await api.createExport({ interval: 'month', offset_day: 0, paused: true });
    api.mode = 'silent';
    const later = await api.call('PATCH', `batch_exports/${id}`, { offset_day: 27 });
    const last = await api.call('PATCH', `batch_exports/${id}`, { interval: 'week' });
    expect([later.status, last.status]).toEqual([202, 202]);
    api.mode = 'decide';
    await api.advanceSchedule(id);
    const { body } = await api.call('GET', `batch_exports/${id}`);
    expect(['week', 0]).toEqual([body.interval, body.offset_day]);
  });
});

describe('unpausing after a pause that is too long to backfill', () => {
  it('is rejected with the field backfill, and accepted without it', async () => {
    const id = await createLaggingExport(api, minuteAgo(60), { paused: true });
    await pauseWasRecorded(id, minuteAgo(55));
    const rejected = await api.call('POST', `batch_exports/${id}/unpause`, { backfill: true });
    expect([rejected.status, rejected.body.attr]).toEqual([400, 'backfill']);
    expect((await api.call('GET', `batch_exports/${id}`)).body.paused).toBe(true);
    expect((await api.call('POST', `batch_exports/${id}/unpause`)).status).toBe(200);
  });
});
