import { describe, expect, it } from '@jest/globals';
import { deliveryMetadata } from '../../../src/temporal/clients/notification_client.ts';
import {
  backfillMetadata,
  jobMetadata,
  runMetadata,
  runSummary,
  scheduleMetadata,
} from '../../../src/temporal/clients/user_metadata.ts';
import { startableRun } from '../startable_run.ts';

const exported = {
  id: 'e1',
  team_id: 1,
  name: 'Shop daily',
  model: 'events',
  interval: 'day',
  timezone: 'America/New_York',
  destination_uri: 's3://bucket/shop',
};
const console = { EXPORTD_BASE_URL: 'https://exportd.example.com/tools/' };
const noConsole = { EXPORTD_BASE_URL: undefined };
const backfill = { id: 'b1', start_at: '2026-11-01T05:00:00.000Z', end_at: '2026-11-03T05:00:00.000Z' };

describe('what the Temporal UI says of', () => {
  it('a run has its interval in the zone of the export, its bucket and links to the console', () => {
    const run = startableRun({ batch_export_id: 'e1', timezone: 'America/New_York', backfill_id: 'b1' });
    expect(runMetadata(run, console, undefined)).toEqual({
      staticSummary: 'events of "Shop", 2026-11-01 10:00–11:00',
      staticDetails: [
        'This run exports one interval of [**Shop**](https://exportd.example.com/tools/exports/e1).',
        '',
        '- Interval: [2026-11-01 05:00–06:00 America/New_York](https://exportd.example.com/tools/exports/e1/intervals/2026-11-01T10%3A00%3A00.000Z)',
        '- Rows: events, every hour',
        '- Destination: `s3://bucket/events`',
        '- Started by: [a backfill](https://exportd.example.com/tools/exports/e1?tab=backfills) `b1`',
        '- Run: `run`',
      ].join('\n'),
    });
  });

  it('a schedule has name, interval and bucket, and no link while the console is not known', () => {
    const { staticSummary, staticDetails } = scheduleMetadata(exported, noConsole, 'it had no execution');
    expect(staticSummary).toBe(
      'Schedule of "Shop daily", every day to s3://bucket/shop. Started by the reconciler: it had no execution',
    );
    expect(staticDetails).toContain('The schedule of **Shop daily** starts');
    expect(staticDetails).toContain('\n\nStarted by the reconciler: it had no execution\n\n');
    expect(staticDetails).not.toContain('](');
  });

  it('a job of something else than an export names its target, and no nested parameters', () => {
    const job = { id: 'j1', summary: 'Test of a webhook', target: 'w1', name: null };
    const { staticSummary, staticDetails } = jobMetadata(
      { ...job, parameters: { deep: true, config: { bucket_name: 'b' } } },
      noConsole,
    );
    expect(staticSummary).toBe('Test of a webhook');
    expect(staticDetails).toContain('- For: `w1`\n- deep: `true`\n- Job: `j1`');
  });

  it.each([
    ['wide characters', '漢'.repeat(255)],
    ['characters that JSON escapes', '"\u0001'.repeat(127)],
    ['emoji', '🦔'.repeat(127)],
  ])('a workflow stays within the maximum length of Temporal with %s in the name', (_, name) => {
    const named = { ...exported, name, destination_uri: `s3://${'p'.repeat(1_000)}` };
    const delivery = { id: 'd1', type: 'run.failed', batch_export_id: 'e1', origin: 'https://example.com' };
    for (const { staticSummary, staticDetails } of [
      runMetadata(startableRun({ batch_export_name: name }), console, undefined),
      scheduleMetadata(named, console, undefined),
      backfillMetadata(backfill, named, console, undefined),
      deliveryMetadata({ ...delivery, name }, console),
      jobMetadata({ id: 'j1', summary: 'Check of a table', target: 'e1', name, parameters: {} }, console),
    ]) {
      expect(Buffer.byteLength(JSON.stringify(staticSummary))).toBeLessThan(400);
      expect(Buffer.byteLength(JSON.stringify(staticDetails))).toBeLessThan(20_000);
    }
  });

  it('an export contains no Markdown or HTML of those who name it', () => {
    const name = '[x](https://evil.example) <img src=x> `a` **b**\n# c';
    const { staticDetails } = scheduleMetadata({ ...exported, name }, noConsole, undefined);
    expect(staticDetails).toContain(
      '**\\[x\\]\\(https://evil.example\\) \\<img src=x\\> \\`a\\` \\*\\*b\\*\\* \\# c**',
    );
  });

  it('a run of another day names both days', () => {
    expect(runSummary(startableRun({ data_interval_end: '2026-11-02T10:00:00.000Z' }))).toBe(
      'events of "Shop", 2026-11-01 10:00–2026-11-02 10:00',
    );
  });
});
