import { describe, expect, it } from '@jest/globals';
import { casesOf } from '../setup/effort.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  compare,
  currentUuids,
  deleteAndStore,
  deleted,
  deleteRows,
  difference,
  expectSettled,
  exportHour,
  find,
  insertLateRows,
  intervalOf,
  type Kind,
  kinds,
  newestRun,
  retry,
  rows,
  sourceUuidsOf,
  stack,
  untilLoud,
  untilQuiet,
  verify,
  verifyCommand,
  useStack,
} from './lost_rows.ts';

// Decisions are jobs that the command line polls.
useStack('kept-rows', { EXPORTD_JOB_WAIT_TIMEOUT: '0s' });

// What a person decides is the same, whatever has found the difference: difference.e2e.ts keeps and removes rows after each kind.
describe('rows that were kept', () => {
  it.each(casesOf<Kind>(['held'], kinds))(
    'may come back in part after a %s, and are exported once',
    async (kind) => {
      const exported = await exportHour();
      const { uuids: gone, restore } = await deleteAndStore(exported, deleted);
      await find(exported, kind);
      await untilLoud(exported);
      expect(await difference(exported, '--keep', '--reason', 'ticket 7')).toMatchObject({
        code: 0,
        stderr: '',
      });
      await untilQuiet(exported);

      await restore(2);
      await compare(exported);
      await untilQuiet(exported);
      await retry(exported);
      await newestRun(exported, 'Completed');
      const anew = { start_at: exported.start, end_at: exported.end, rewrite: true };
      expect((await stack.call('POST', `/batch_exports/${exported.id}/backfill/`, anew)).status).toBe(200);
      await newestRun(exported, 'Completed');
      await untilQuiet(exported);
      expect(await currentUuids(exported)).toEqual(exported.uuids);
      await verifyCommand(exported, '--fast');
      await verifyCommand(exported, '--deep');
      await verify(exported);
      await untilQuiet(exported);
      const shown = await difference(exported);
      expect([shown.code, shown.stderr]).toEqual([0, '']);
      const back = await sourceUuidsOf(exported);
      for (const uuid of gone)
        expect([uuid, shown.stdout.includes(uuid)]).toEqual([uuid, !back.includes(uuid)]);

      // The others come back too, and then all is as if nothing had happened.
      await stack.pool.query('delete from events where uuid = any($1)', [gone]);
      await restore(deleted);
      await expectSettled(exported, exported.uuids);
      expect(await sourceUuidsOf(exported)).toEqual(exported.uuids);
    },
  );

  it.each([
    ['in another part of the hour', rows - deleted + 1],
    ['beside them', 2],
  ])('are told from others that leave the source once they came back in part: %s', async (_, before) => {
    const exported = await exportHour();
    const { restore } = await deleteAndStore(exported, deleted);
    await find(exported, 'verification');
    await untilLoud(exported);
    expect(await difference(exported, '--keep', '--reason', 'ticket 7')).toMatchObject({
      code: 0,
      stderr: '',
    });
    await restore(2);
    await verifyCommand(exported, '--deep');
    const { rows: others } = await stack.pool.query<{ uuid: string }>(
      `delete from events where uuid = (
         select uuid from events where team_id = $1 and inserted_at >= $2 order by inserted_at offset $3 limit 1)
       returning uuid`,
      [stack.projectId, exported.start, before],
    );
    await expect(verifyCommand(exported, '--deep')).rejects.toThrow(
      new RegExp(`UNEXPECTED[^]*3 rows are in a file but not in the source[^]*${others[0]?.uuid}`),
    );
    await expect(verifyCommand(exported, '--fast')).rejects.toThrow(/FINGERPRINT/);
    await retry(exported);
    expect((await newestRun(exported, 'Failed')).latest_error).toContain('no longer has 3 of the 600 rows');
    await verify(exported);
    await untilLoud(exported);
    expect(await difference(exported, '--keep', '--reason', 'ticket 8')).toMatchObject({
      code: 0,
      stderr: '',
    });
    await untilQuiet(exported);
  });

  it.each(casesOf<Kind>(['verification'], kinds))(
    'stay when late rows of their interval follow a %s',
    async (kind) => {
      const exported = await exportHour();
      await deleteRows(exported, deleted);
      await find(exported, kind);
      await untilLoud(exported);
      expect(await difference(exported, '--keep', '--reason', 'ticket 8')).toMatchObject({
        code: 0,
        stderr: '',
      });
      await untilQuiet(exported);
      await insertLateRows(exported, 3, 0);
      const late = (await sourceUuidsOf(exported)).filter((uuid) => !exported.uuids.includes(uuid));
      expect(late).toHaveLength(3);
      await compare(exported);
      await waitFor(
        async () => (await currentUuids(exported)).length === rows + 3,
        'the repair that adds the late rows',
      );
      await expectSettled(exported, [...exported.uuids, ...late]);
      expect((await intervalOf(exported)).interval).toMatchObject({
        decision: { decision: 'keep', rows: deleted },
      });
    },
  );

  it('are kept beside late rows that came before the decision', async () => {
    const exported = await exportHour();
    const gone = await deleteRows(exported, deleted);
    await insertLateRows(exported, 3);
    const late = (await sourceUuidsOf(exported)).filter((uuid) => !exported.uuids.includes(uuid));
    await compare(exported);
    await waitFor(
      async () => (await currentUuids(exported)).length === rows + 3,
      'the repair that adds the late rows',
    );
    await compare(exported);
    await untilLoud(exported);
    const shown = await difference(exported);
    expect(shown.stdout).toContain(`have ${deleted} rows that the source lacks`);
    for (const uuid of gone) expect(shown.stdout).toContain(uuid);
    expect(await difference(exported, '--keep', '--reason', 'ticket 9')).toMatchObject({
      code: 0,
      stderr: '',
    });
    await untilQuiet(exported);
    await expectSettled(exported, [...exported.uuids, ...late]);
  });
});
