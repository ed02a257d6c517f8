import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import {
  findViolations,
  launchBrowser,
  openConsole,
  overflowsSideways,
  takeScreenshot,
} from '../console/browser.ts';
import { type Receiver, startReceiver } from '../notifications/receiver.ts';
import { casesOf } from '../setup/effort.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import {
  cli,
  compare,
  conditionOf,
  deleted,
  deleteRows,
  difference,
  exportHour,
  find,
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
import { exportedUuids, sourceUuids } from './rows.ts';

/** Set to a folder to look at the dialog. */
const screenshots = process.env.EXPORTD_SCREENSHOTS;
const secret = createWebhookSecret();
let receiver: Receiver;

useStack('difference');
beforeAll(async () => {
  receiver = await startReceiver(secret);
  await stack.call('POST', '/webhooks/', { url: receiver.url, secret });
});
afterAll(() => receiver.close());

/** The messages that begin and end the alarm. */
const toldOf = (kind: Kind): readonly string[] =>
  kind === 'held' ? ['run.held', 'batch_export.recovered'] : ['export.differs', 'export.agrees'];

/** Waits until webhooks were told of the end, with the incident of the begin. */
const untilTold = (kind: Kind, id: string) =>
  waitFor(
    () => {
      const [begin, end] = toldOf(kind).map((type) =>
        receiver.messages.findLast((one) => one.type === type && one.data.batch_export_id === id),
      );
      const [opened, closed] = [begin, end].map((one) => one?.data.incident as { id: string } | undefined);
      return opened && closed && opened.id === closed.id;
    },
    () => `the closing message; sent are ${receiver.messages.map(({ type }) => type).join(', ')}`,
  );

const audited = async (id: string) => {
  const { rows: found } = await stack.pool.query<{
    email: string;
    changes: { field: string; after: unknown }[];
  }>(
    `select email, changes from exportd.audit_events event join exportd.users on users.id = event.user_id
     where action = 'difference.decide' and object like '%' || $1 || '%'`,
    [id],
  );
  return found.map(({ email, changes }) => [
    email,
    Object.fromEntries(changes.map(({ field, after }) => [field, after])),
  ]);
};

describe.each(kinds)('a difference that is found by a %s', (kind) => {
  it('rings on all surfaces until the exported rows are kept, and then for other rows only', async () => {
    const exported = await exportHour();
    const gone = await deleteRows(exported, deleted);
    await find(exported, kind);
    await untilLoud(exported);
    const [action] = (await conditionOf(exported)).actions;
    expect(action).toMatchObject({
      method: 'GET',
      command: `exportd export difference ${exported.id} ${exported.start}`,
    });

    const shown = await difference(exported);
    expect(shown.stderr).toBe('');
    expect(shown.stdout).toContain(`have ${deleted} rows that the source lacks`);
    for (const uuid of gone) expect(shown.stdout).toContain(uuid);
    const withoutReason = await difference(exported, '--keep');
    expect(withoutReason).toMatchObject({ code: 1, stderr: expect.stringContaining('--reason') });
    await untilLoud(exported);

    const kept = await difference(exported, '--keep', '--reason', 'ticket 7');
    expect(kept).toMatchObject({ code: 0, stderr: '' });
    await untilQuiet(exported);
    await untilTold(kind, exported.id);
    const { interval } = await intervalOf(exported);
    expect(interval).toMatchObject({
      status: 'exported',
      held: null,
      decision: { decision: 'keep', rows: deleted, reason: 'ticket 7', by: 'tess@example.com' },
    });
    expect(await audited(exported.id)).toEqual([
      ['tess@example.com', { decision: 'keep', reason: 'ticket 7', rows: deleted }],
    ]);
    // Deciding twice.
    const again = await difference(exported, '--keep', '--reason', 'again');
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('already kept') });

    // The same rows, by each kind of check.
    await compare(exported);
    await verify(exported);
    await retry(exported);
    const unchanged = await newestRun(exported, 'Completed');
    expect((await intervalOf(exported)).interval.manifest_run_id).not.toBe(unchanged.id);
    await untilQuiet(exported);
    await verifyCommand(exported, '--fast');
    await verifyCommand(exported, '--deep');
    expect(
      receiver.messages.filter(
        ({ type, data }) => type === 'run.held' && data.batch_export_id === exported.id,
      ),
    ).toHaveLength(kind === 'held' ? 1 : 0);

    // Other rows.
    await deleteRows(exported, 1);
    await find(exported, kind);
    await untilLoud(exported);
    expect(
      (await stack.call('POST', `${exported.path}/difference/`, { decision: 'keep', reason: 'ticket 8' }))
        .status,
    ).toBe(200);
    await untilQuiet(exported);
    expect((await intervalOf(exported)).interval).toMatchObject({
      decision: { rows: deleted + 1, reason: 'ticket 8' },
    });
    const { interval: last } = await intervalOf(exported);
    const manifest = (await stack.runs(exported.id)).find(({ id }) => id === last.manifest_run_id);
    expect(await exportedUuids(stack.bucket, manifest?.manifest_key ?? null)).toEqual(exported.uuids);
  });
});

// Rows of a Delta table are removed after a comparison, below.
describe.each(casesOf<Kind>(['held', 'verification'], kinds))(
  'a difference that is found by a %s',
  (kind) => {
    it('rings on all surfaces until the rows are removed, whose number has to be right', async () => {
      const exported = await exportHour();
      await deleteRows(exported, deleted);
      await find(exported, kind);
      await untilLoud(exported);
      const decide = (body: object) =>
        stack.call('POST', `${exported.path}/difference/`, { decision: 'remove', ...body });
      expect(await decide({ rows: deleted })).toMatchObject({ status: 400, body: { attr: 'reason' } });
      expect(await decide({ rows: deleted, reason: ' ' })).toMatchObject({
        status: 400,
        body: { attr: 'reason' },
      });
      expect(await decide({ reason: 'erasure' })).toMatchObject({ status: 400, body: { attr: 'rows' } });
      expect(await decide({ reason: 'erasure', rows: -1 })).toMatchObject({ status: 400 });
      expect(await decide({ reason: 'erasure', rows: deleted + 1 })).toMatchObject({
        status: 409,
        body: { detail: expect.stringContaining(`lacks ${deleted} rows`) },
      });
      // It has changed since the difference was read.
      await deleteRows(exported, 1);
      expect(await decide({ reason: 'erasure', rows: deleted })).toMatchObject({
        status: 409,
        body: { detail: expect.stringContaining(`lacks ${deleted + 1} rows`) },
      });
      await untilLoud(exported);

      const removed = await difference(exported, '--remove', `${deleted + 1}`, '--reason', 'erasure');
      expect(removed).toMatchObject({ code: 0, stderr: '' });
      const run = await newestRun(exported, 'Completed');
      await untilQuiet(exported);
      await untilTold(kind, exported.id);
      const left = await sourceUuids(stack.pool, stack.projectId, exported.start, exported.end);
      expect(left).toHaveLength(rows - deleted - 1);
      expect(await exportedUuids(stack.bucket, run.manifest_key)).toEqual(left);
      expect((await intervalOf(exported)).interval).toMatchObject({
        status: 'exported',
        decision: { decision: 'remove', rows: deleted + 1, reason: 'erasure', by: 'tess@example.com' },
      });
      expect(await audited(exported.id)).toEqual([
        ['tess@example.com', { decision: 'remove', reason: 'erasure', rows: deleted + 1 }],
      ]);
      expect(await decide({ reason: 'twice', rows: 0 })).toMatchObject({
        status: 409,
        body: { code: 'conflict' },
      });
      expect(await decide({ reason: 'twice', rows: deleted + 1 })).toMatchObject({ status: 409 });
      expect(
        await stack.call('POST', `${exported.path}/difference/`, { decision: 'keep', reason: 'twice' }),
      ).toMatchObject({
        status: 409,
        body: { detail: expect.stringContaining('nothing to decide') },
      });
      await verify(exported);
      await untilQuiet(exported);
    });
  },
);

describe('rows of a Delta table', () => {
  it.each(casesOf<Kind>(['comparison'], kinds))(
    'leave the table too when they are removed after a %s',
    async (kind) => {
      const prefix = `tables/${kind}`;
      const exported = await exportHour({
        prefix,
        file_format: 'Parquet',
        compression: 'snappy',
        table_format: 'delta',
      });
      const table = createDeltaReader(stack.bucket, prefix);
      const tableUuids = async () => (await table.rows()).map(({ uuid }) => String(uuid)).sort();
      const before = await tableUuids();
      expect(before).toHaveLength(rows);
      await deleteRows(exported, deleted);
      await find(exported, kind);
      await untilLoud(exported);
      // Nothing has changed for readers until a person decides.
      expect(await tableUuids()).toEqual(before);
      const removed = await difference(exported, '--remove', String(deleted), '--reason', 'erasure');
      expect(removed).toMatchObject({ code: 0, stderr: '' });
      await newestRun(exported, 'Completed');
      await untilQuiet(exported);
      const left = await sourceUuidsOf(exported);
      expect(left).toHaveLength(rows - deleted);
      await waitFor(async () => (await tableUuids()).length === left.length, 'the commit of the removal');
      expect(await tableUuids()).toEqual(left);
      const checked = await cli('table', 'check', exported.id);
      expect([checked.code, checked.stderr]).toEqual([0, '']);
      await verifyCommand(exported, '--deep');
    },
  );
});

describe('the dialog of the page of an interval', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  const allLooks = (['desktop', 'phone'] as const).flatMap((device) =>
    (['light', 'dark'] as const).map((colorScheme) => ({ device, colorScheme })),
  );
  // As pages are looked at: `describe_pages.ts`. `files.unit.ts` compares all colours of both themes.
  const looks = casesOf(
    allLooks.filter(({ device, colorScheme }) => (device === 'phone') === (colorScheme === 'dark')),
    allLooks,
  );
  it('shows the rows, keeps them with a reason, and removes them once their number is typed', async () => {
    const exported = await exportHour();
    const gone = await deleteRows(exported, deleted);
    await find(exported, 'held');
    const address = `/exports/${exported.id}/intervals/${encodeURIComponent(exported.start)}`;
    for (const look of looks) {
      const opened = await openConsole(browser, stack.baseUrl, { ...look, key: stack.key });
      const { page, problems } = opened;
      await page.goto(`/exports/${exported.id}`);
      await page.getByRole('link', { name: /^Keep or remove rows of/ }).click();
      const dialog = page.getByRole('dialog', { name: 'Keep or remove rows' });
      await dialog.getByText(`The files have ${deleted} rows that the source lacks`).waitFor();
      for (const uuid of gone) expect(await dialog.getByLabel('Ids of the rows').innerText()).toContain(uuid);
      const keep = dialog.getByRole('button', { name: 'Keep the exported rows' });
      const remove = dialog.getByRole('button', { name: `Remove ${deleted} rows from the bucket` });
      expect([await keep.isDisabled(), await remove.isDisabled()]).toEqual([true, true]);
      await dialog.getByLabel('Reason').fill('ticket 9');
      expect([await keep.isDisabled(), await remove.isDisabled()]).toEqual([false, true]);
      await dialog.getByLabel(`To remove them, type ${deleted}`).fill('3');
      expect(await remove.isDisabled()).toBe(true);
      await dialog.getByLabel(`To remove them, type ${deleted}`).fill(String(deleted));
      expect(await remove.isDisabled()).toBe(false);
      if (screenshots)
        await takeScreenshot(page, screenshots, `difference_${look.device}_${look.colorScheme}`);
      expect(await findViolations(page)).toEqual([]);
      expect(await overflowsSideways(page)).toBe(false);
      expect(problems).toEqual([]);
      await opened.close();
    }
    const opened = await openConsole(browser, stack.baseUrl, {
      device: 'desktop',
      colorScheme: 'light',
      key: stack.key,
    });
    const { page } = opened;
    await page.goto(address);
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Keep or remove rows…' }).click();
    await dialog.getByLabel('Reason').fill('ticket 9');
    // Another row leaves the source, which the person has not seen.
    await deleteRows(exported, 1);
    const lacking = deleted + 1;
    await dialog.getByRole('button', { name: 'Keep the exported rows' }).click();
    await dialog.getByText(`lacks ${lacking} rows of the files now, not ${deleted}`).waitFor();
    await dialog.getByText(`The files have ${lacking} rows that the source lacks`).waitFor();
    await dialog.getByRole('button', { name: 'Keep the exported rows' }).click();
    await page.getByText(`${lacking} rows that the source lacks: kept by`).waitFor();
    if (screenshots) await takeScreenshot(page, screenshots, 'difference_kept');
    expect(await page.locator('.notice-danger').count()).toBe(0);
    await untilQuiet(exported);
    await page.getByRole('button', { name: 'Keep or remove rows…' }).click();
    await dialog.getByLabel('Reason').fill('they may go');
    await dialog.getByLabel(`To remove them, type ${lacking}`).fill(String(lacking));
    await dialog.getByRole('button', { name: `Remove ${lacking} rows from the bucket` }).click();
    await page.getByText(`${lacking} rows that the source lacks: removed by`).waitFor();
    const run = await newestRun(exported, 'Completed');
    const left = await sourceUuids(stack.pool, stack.projectId, exported.start, exported.end);
    expect(await exportedUuids(stack.bucket, run.manifest_key)).toEqual(left);
    await opened.close();
  });
});
