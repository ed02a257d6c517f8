import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createVerifyHarness, hours, remarksOf, teamId, type VerifyHarness } from './verify_harness.ts';

describe('rows that no interval has', () => {
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(5);
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
       select $1, gen_random_uuid(), 'stray', 'd', now(), at
       from unnest(array['infinity', '-infinity', now() + interval '3 years']::timestamptz[]) at`,
      [teamId],
    );
  });
  afterAll(() => harness.close());

  const infinite =
    /^The source has 2 rows of "?.*events"? with an infinite inserted_at: no interval has them/;
  const ahead = /^The source has 1 row of .* more than a day ahead of the clock/;

  it('are missing if they have an infinite time, and noted if they wait for the clock', async () => {
    const exported = await harness.exportHours();
    const report = await exported.verify();
    const { ok, findings } = report;
    expect([ok, findings]).toMatchObject([
      false,
      [{ kind: 'missing', count: 2, detail: expect.stringMatching(infinite) }],
    ]);
    expect(remarksOf(report).map(({ detail }) => detail)).toEqual([expect.stringMatching(ahead)]);
    const ofTime = await exported.verify({ from: hours[0]?.start });
    expect([ofTime.ok, remarksOf(ofTime)]).toEqual([true, []]);
  });

  it('are noted if the export may not select them', async () => {
    const exported = await harness.exportHours({ config: { exclude_events: ['stray'] } });
    const report = await exported.verify();
    expect([report.ok, remarksOf(report).map(({ detail }) => detail)]).toEqual([
      true,
      [expect.stringMatching(infinite), expect.stringMatching(ahead)],
    ]);
  });
});
