import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import type { Browser } from 'playwright-core';
import { exportd } from '../cli/command_line.ts';
import {
  findViolations,
  launchBrowser,
  openConsole,
  overflowsSideways,
  takeScreenshot,
} from '../console/browser.ts';
import { type Receiver, startReceiver } from '../notifications/receiver.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type MonitoredStack, scrape, startMonitoredStack } from './monitored_stack.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { exportedUuids, insertEvents, sourceUuids } from './rows.ts';
import type { RunResponse } from './stack.ts';

/** How a difference is found: a run that would have removed rows, a comparison by the maintenance, or a verification. */
const kinds = ['held', 'comparison', 'verification'] as const;
type Kind = (typeof kinds)[number];

const rows = 60;
const deleted = 4;
/** Set to a folder to look at the dialog. */
const screenshots = process.env.EXPORTD_SCREENSHOTS;
const secret = createWebhookSecret();
let stack: MonitoredStack;
let receiver: Receiver;
/** The hours of the tests, of which each has its own. */
let hours = 3;

beforeAll(async () => {
  receiver = await startReceiver(secret);
  stack = await startMonitoredStack('difference', {
    settings: { EXPORTD_OLD_GENERATION_RETENTION: '0s', EXPORTD_MAINTENANCE_INTERVAL: '500ms' },
  });
  await stack.call('POST', '/webhooks/', { url: receiver.url, secret });
});
afterAll(async () => {
  await stack.stop();
  await receiver.close();
});

const environment = () => ({ EXPORTD_BASE_URL: stack.baseUrl, EXPORTD_API_KEY: stack.key });
const cli = (...args: readonly string[]) => exportd(environment(), ...args);

/** An export of one hour of the source, of which the rows of its first minutes are deleted. */
interface Exported {
  readonly id: string;
  readonly start: string;
  readonly end: string;
  readonly path: string;
  /** What was exported. */
  readonly uuids: readonly string[];
}

const newestRun = async ({ id }: Pick<Exported, 'id'>, status: string): Promise<RunResponse> =>
  waitFor(async () => {
    const [newest] = await stack.runs(id);
    return newest?.status === status ? newest : undefined;
  }, `the newest run is ${status}`);

async function exportHour(config: Record<string, unknown> = {}): Promise<Exported> {
  const [start, end] = [hourAgo(hours), hourAgo(hours - 1)];
  hours += 1;
  await insertEvents(stack.pool, stack.projectId, start, rows);
  const id = await stack.createExport({}, config);
  const range = { start_at: start.toISOString(), end_at: end.toISOString() };
  expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
  const run = await newestRun({ id }, 'Completed');
  return {
    id,
    start: range.start_at,
    end: range.end_at,
    path: `/batch_exports/${id}/intervals/${range.start_at}`,
    uuids: config.table_format === undefined ? await exportedUuids(stack.bucket, run.manifest_key) : [],
  };
}

/** Deletes the first rows that the source still has. @returns their ids */
async function deleteRows({ start }: Exported, count: number): Promise<string[]> {
  const { rows: found } = await stack.pool.query<{ uuid: string }>(
    `delete from events where uuid in (
       select uuid from events where team_id = $1 and inserted_at >= $2 order by inserted_at limit $3) returning uuid`,
    [stack.projectId, start, count],
  );
  return found.map(({ uuid }) => uuid).sort();
}

const retry = async (exported: Exported): Promise<void> => {
  const [newest] = await stack.runs(exported.id);
  const retried = await stack.call('POST', `/batch_exports/${exported.id}/runs/${newest?.id}/retry/`);
  expect(retried.status).toBe(200);
};

const intervalOf = async ({ path }: Exported) =>
  (await stack.call('GET', `${path}/`)).body as {
    interval: Record<string, unknown> & {
      manifest_run_id: string;
      comparison: Record<string, unknown> | null;
    };
    newest_check: { kind: string; is_equal: boolean };
  };

/** How often the files of a run were compared. */
async function comparisonsOf(runId: string): Promise<number> {
  const { rows: found } = await stack.pool.query<{ comparisons: number }>(
    'select comparisons from exportd.interval_comparisons where run_id = $1',
    [runId],
  );
  return found[0]?.comparisons ?? 0;
}

/** Makes a comparison of the current files due, and waits until it was made. A repair may replace them meanwhile. */
async function compare(exported: Exported): Promise<void> {
  const before = new Map<string, number>();
  await waitFor(async () => {
    const runId = (await intervalOf(exported)).interval.manifest_run_id;
    const counted = before.get(runId);
    if (counted !== undefined) return (await comparisonsOf(runId)) > counted;
    before.set(runId, await comparisonsOf(runId));
    await stack.pool.query(
      `update exportd.interval_comparisons set next_due_at = clock_timestamp() - interval '1 year' where run_id = $1`,
      [runId],
    );
    return false;
  }, 'the comparison');
}

async function verify({ path }: Exported): Promise<void> {
  expect((await stack.call('POST', `${path}/verifications/`, {})).status).toBe(202);
  await waitFor(async () => {
    const { body } = await stack.call('GET', `${path}/verifications/`);
    return (body.results as { status: string }[]).every(({ status }) => status === 'completed');
  }, 'the verification');
}

/** Lets the difference be found. */
async function find(exported: Exported, kind: Kind): Promise<void> {
  if (kind === 'comparison') await compare(exported);
  if (kind === 'verification') await verify(exported);
  if (kind !== 'held') return;
  await retry(exported);
  await newestRun(exported, 'Failed');
}

const conditionOf = async ({ id }: Exported) =>
  (await stack.call('GET', `/batch_exports/${id}/`)).body.condition as {
    cause: string;
    severity: string;
    actions: { command: string; method: string; path: string }[];
  };

/** Whether the export rings on the API, in the list, on the command line and in metrics. */
async function rings(exported: Exported): Promise<Record<string, boolean>> {
  const listed = (await stack.call('GET', '/batch_exports/?limit=100')).body.results as {
    id: string;
    condition: { severity: string };
  }[];
  const status = await cli('status');
  const metrics = await scrape(stack.serverUrl);
  const sum = (name: string): number =>
    [...metrics.matchAll(new RegExp(`^${name}{.*} (\\d+)$`, 'gm'))].reduce(
      (total, [, value]) => total + Number(value),
      0,
    );
  const { newest_check } = await intervalOf(exported);
  return {
    api: (await conditionOf(exported)).severity !== 'ok',
    list: listed.find(({ id }) => id === exported.id)?.condition.severity !== 'ok',
    cli: status.code !== 0,
    metrics: sum('exportd_held_intervals') + sum('exportd_differing_intervals') > 0,
    page: !newest_check.is_equal,
  };
}
const everywhere = { api: true, list: true, cli: true, metrics: true, page: true };
const nowhere = { api: false, list: false, cli: false, metrics: false, page: false };

/** Metrics are made once a second at most. */
const until = (exported: Exported, expected: object, what: string) =>
  waitFor(async () => JSON.stringify(await rings(exported)) === JSON.stringify(expected), what);
const untilQuiet = (exported: Exported) => until(exported, nowhere, 'no surface has an alarm');
const untilLoud = (exported: Exported) => until(exported, everywhere, 'all surfaces have the alarm');

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

/** Runs `exportd export difference` for an interval. */
const difference = (
  { id, start }: { readonly id: string; readonly start: string },
  ...options: readonly string[]
) => cli('export', 'difference', id, start, ...options);

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

    // The same rows, whoever finds them.
    await compare(exported);
    await verify(exported);
    await retry(exported);
    const unchanged = await newestRun(exported, 'Completed');
    expect((await intervalOf(exported)).interval.manifest_run_id).not.toBe(unchanged.id);
    await untilQuiet(exported);
    await stack.runCommand('.', 'verify', exported.id, '--fast');
    await stack.runCommand('.', 'verify', exported.id, '--deep');
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
      body: { attr: 'rows', detail: expect.stringContaining(`lacks ${deleted} rows`) },
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
});

/** The newest files of the interval, which a backfill that changed nothing did not replace. */
async function currentUuids(exported: Exported): Promise<string[]> {
  const { interval } = await intervalOf(exported);
  const run = (await stack.runs(exported.id)).find(({ id }) => id === interval.manifest_run_id);
  return exportedUuids(stack.bucket, run?.manifest_key ?? null);
}

const sourceUuidsOf = ({ start, end }: Exported) => sourceUuids(stack.pool, stack.projectId, start, end);

/** Deletes rows, and returns what puts the first `count` of them back as they were. */
async function deleteAndStore(exported: Exported, count: number) {
  const stored = `deleted_${hours}_${count}`;
  await stack.pool.query(
    `create table ${stored} as select * from events
     where team_id = ${stack.projectId} and inserted_at >= '${exported.start}' order by inserted_at limit ${count}`,
  );
  const uuids = await deleteRows(exported, count);
  const restore = (rows: number) =>
    stack.pool.query(`insert into events select * from ${stored} order by inserted_at limit ${rows}`);
  return { uuids, restore };
}

/** Inserts rows into the interval after it was exported. */
const insertLateRows = ({ start }: Exported, count: number): Promise<void> =>
  insertEvents(stack.pool, stack.projectId, new Date(Date.parse(start) + 1_800_000), count, 60);

/** Compares, verifies and exports again what a person has decided about: nothing rings, and `exportd verify` agrees. */
async function expectSettled(exported: Exported, files: readonly string[]): Promise<void> {
  await compare(exported);
  await verify(exported);
  await retry(exported);
  await newestRun(exported, 'Completed');
  await untilQuiet(exported);
  expect(await currentUuids(exported)).toEqual(files.toSorted());
  await stack.runCommand('.', 'verify', exported.id, '--deep');
}

describe('rows that were kept', () => {
  it.each(kinds)('may come back in part after a %s, and are exported once', async (kind) => {
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
    await untilQuiet(exported);
    expect(await currentUuids(exported)).toEqual(exported.uuids);
    await stack.runCommand('.', 'verify', exported.id, '--fast');
    await stack.runCommand('.', 'verify', exported.id, '--deep');
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
  });

  it('are told from others that leave the source once they came back in part', async () => {
    const exported = await exportHour();
    const { restore } = await deleteAndStore(exported, deleted);
    await find(exported, 'verification');
    await untilLoud(exported);
    expect(await difference(exported, '--keep', '--reason', 'ticket 7')).toMatchObject({
      code: 0,
      stderr: '',
    });
    await restore(2);
    await stack.runCommand('.', 'verify', exported.id, '--deep');
    const { rows: others } = await stack.pool.query<{ uuid: string }>(
      `delete from events where uuid = (
         select uuid from events where team_id = $1 and inserted_at < $2 order by inserted_at desc limit 1)
       returning uuid`,
      [stack.projectId, exported.end],
    );
    await expect(stack.runCommand('.', 'verify', exported.id, '--deep')).rejects.toThrow(
      new RegExp(`UNEXPECTED[^]*3 rows are in a file but not in the source[^]*${others[0]?.uuid}`),
    );
    await verify(exported);
    await untilLoud(exported);
    expect(await difference(exported, '--keep', '--reason', 'ticket 8')).toMatchObject({
      code: 0,
      stderr: '',
    });
    await untilQuiet(exported);
  });

  it.each(kinds)('stay when late rows of their interval follow a %s', async (kind) => {
    const exported = await exportHour();
    await deleteRows(exported, deleted);
    await find(exported, kind);
    await untilLoud(exported);
    expect(await difference(exported, '--keep', '--reason', 'ticket 8')).toMatchObject({
      code: 0,
      stderr: '',
    });
    await untilQuiet(exported);
    await insertLateRows(exported, 3);
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
  });

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

describe('rows of a Delta table', () => {
  it.each(kinds)('leave the table too when they are removed after a %s', async (kind) => {
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
    await stack.runCommand('.', 'verify', exported.id, '--deep');
  });
});

describe('the dialog of the page of an interval', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  const looks = (['desktop', 'phone'] as const).flatMap((device) =>
    (['light', 'dark'] as const).map((colorScheme) => ({ device, colorScheme })),
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
    await dialog.getByRole('button', { name: 'Keep the exported rows' }).click();
    await page.getByText('4 rows that the source lacks: kept by').waitFor();
    if (screenshots) await takeScreenshot(page, screenshots, 'difference_kept');
    expect(await page.locator('.notice-danger').count()).toBe(0);
    await untilQuiet(exported);
    await page.getByRole('button', { name: 'Keep or remove rows…' }).click();
    await dialog.getByLabel('Reason').fill('they may go');
    await dialog.getByLabel(`To remove them, type ${deleted}`).fill(String(deleted));
    await dialog.getByRole('button', { name: `Remove ${deleted} rows from the bucket` }).click();
    await page.getByText('4 rows that the source lacks: removed by').waitFor();
    const run = await newestRun(exported, 'Completed');
    const left = await sourceUuids(stack.pool, stack.projectId, exported.start, exported.end);
    expect(await exportedUuids(stack.bucket, run.manifest_key)).toEqual(left);
    await opened.close();
  });
});
