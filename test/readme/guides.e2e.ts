import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { scopes } from '../../src/http/scopes.ts';
import type { Pool } from '../../src/journal/database.ts';
import { exportd } from '../cli/command_line.ts';
import { posthogKey, recorded, startRecordedServer } from '../cli/import/recordings.ts';
import type { FakeServer } from '../destination/fake_server.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { readObject } from '../e2e/rows.ts';
import { type Stack, startStack } from '../e2e/stack.ts';
import { createBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type GuideProgram, type GuideShell, openGuideShell, printedPattern, stepsOf } from './guide.ts';

// The guides as a person follows them, one after another with the same export. test/e2e/person_leaves.e2e.ts runs that of a person who
// leaves, test/reading the programs that `export reading` prints.

/** An hour has a row every 80 seconds. */
const [hours, rows] = [3, 45];
const hour = (number: number): Date => hourAgo(hours - number + 1);

let stack: Stack;
let proxy: S3Proxy;
let posthog: FakeServer;
let shell: GuideShell;

beforeAll(async () => {
  posthog = await startRecordedServer([recorded()]);
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'guides',
    {
      // The view that the first guide creates.
      EXPORTD_EVENTS_RELATION: 'public.exportd_events',
      EXPORTD_S3_RETRY_BUDGET: '1s',
      EXPORTD_S3_PROBE_MAX: '1s',
    },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  // Their owner has only the table of the first guide.
  await stack.pool.query('drop table events, persons, person_distinct_ids');
  const key = await stack.newKey(scopes);
  shell = await openGuideShell(
    { npx: runExportd, psql: runFile(stack.pool) },
    {
      ...stack.environment,
      SOURCE_DATABASE_URL: stack.databaseUrl,
      POSTHOG_API_KEY: posthogKey,
      EXPORTD_BASE_URL: stack.baseUrl,
      EXPORTD_API_KEY: key,
      AWS_ACCESS_KEY_ID: bucket.accessKeyId,
      AWS_SECRET_ACCESS_KEY: bucket.secretAccessKey,
      START: hour(1).toISOString(),
      END: hour(2).toISOString(),
    },
  );
});
afterAll(async () => {
  await shell.close();
  await stack.stop();
  await Promise.all([proxy.close(), posthog.close()]);
});

/** `npx exportd`, in this process and in the folder of the shell. */
const runExportd: GuideProgram = async ({ PWD = '', ...environment }, _exportd, ...args) => {
  const folder = process.cwd();
  process.chdir(PWD);
  try {
    return await exportd(environment, ...args);
  } finally {
    process.chdir(folder);
  }
};

/** What the guides use of psql, which the machine may lack: `psql <url> --file <path>`. */
function runFile(pool: Pool): GuideProgram {
  return async ({ PWD = '' }, _url, _file, path = '') => {
    const script = readFileSync(join(PWD, path), 'utf8');
    for (const statement of script.split(/(?<=;)\n/)) await pool.query(statement);
    return { code: 0, stdout: '', stderr: '' };
  };
}

const insertClicks = (first: number, count: number, start: Date): Promise<unknown> =>
  stack.pool.query(
    `insert into clicks (id, name, user_name, details, happened_at, received_at)
     select $1::int + n, 'click', 'user ' || n % 7, jsonb_build_object('n', n), moment, moment
     from generate_series(0, $2::int - 1) n cross join lateral (select $3::timestamptz + n * interval '80 seconds' as moment) m`,
    [first, count, start],
  );

/** The command of a guide for the servers of the test. */
const forTestServers = (commands: string): string =>
  commands
    .replace('--bucket my-bucket', `--bucket ${stack.bucket.bucket} --endpoint-url ${stack.bucket.endpoint}`)
    .replace('--url https://eu.posthog.com', `--url ${posthog.endpoint}`)
    .replace('--region eu-central-1', `--region ${stack.bucket.region}`);

/** What happened when a page was followed. */
interface Followed {
  /** What the page says that a step prints, and what it printed instead. */
  readonly unmet: readonly { readonly expected: string; readonly printed: string }[];
  /** All that the commands printed. */
  readonly output: string;
}

/** Does what a page says. @param before what happens before the step of each number. @throws Error when a command fails */
async function follow(
  name: string,
  before: Readonly<Record<number, () => Promise<unknown>>> = {},
): Promise<Followed> {
  const unmet: { expected: string; printed: string }[] = [];
  let output = '';
  for (const [index, { language, code, expected }] of stepsOf(`src/guides/${name}.md`).entries()) {
    await before[index]?.();
    if (language === 'sql') {
      await stack.pool.query(code);
      continue;
    }
    const printed = await shell.run(forTestServers(code));
    if (expected !== undefined && !printedPattern(expected).test(printed)) unmet.push({ expected, printed });
    output += printed;
  }
  return { unmet, output };
}

const exportId = async (): Promise<string> => (await shell.run('echo "$ID"')).trim();

/** Waits until the newest backfill has exported all. */
async function waitForBackfill(): Promise<void> {
  const id = await exportId();
  await waitFor(async () => {
    const { body } = await stack.call('GET', `/batch_exports/${id}/backfills/?limit=1`);
    return (body.results as { status: string }[])[0]?.status === 'Completed';
  }, 'the backfill is Completed');
}

describe('the guide', () => {
  it('exports a table of your own', async () => {
    const { unmet } = await follow('export_my_table', { 1: () => insertClicks(0, hours * rows, hour(1)) });
    expect(unmet).toEqual([]);
    await waitForBackfill();
  });

  it('says whether it is complete', async () => {
    expect((await follow('is_it_complete')).unmet).toEqual([]);
  });

  it('prints programs that read it, with the columns of its files', async () => {
    const { unmet, output } = await follow('read_it');
    expect(unmet).toEqual([]);
    const [, declared = ''] =
      /create external table files_\w+ \(([^;]*?)\)\nstored as parquet/.exec(output) ?? [];
    const { body } = await stack.call('GET', `/batch_exports/${await exportId()}/manifests/`);
    const [manifest] = body.results as { key: string }[];
    const { columns } = JSON.parse((await readObject(stack.bucket, manifest?.key ?? '')).toString()) as {
      columns: { name: string }[];
    };
    expect([...declared.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual(
      columns.map(({ name }) => name),
    );
  });

  it('says what it costs', async () => {
    expect((await follow('cost')).unmet).toEqual([]);
  });

  it('exports rows that came late', async () => {
    await insertClicks(1_000, 2, hour(1));
    expect((await follow('late_rows', { 1: waitForBackfill })).unmet).toEqual([]);
  });

  it('keeps rows that were deleted until you decide', async () => {
    await stack.pool.query('delete from clicks where id >= 1000');
    await shell.run('npx exportd export backfill $ID --start-at $START --end-at $END --rewrite');
    await waitForBackfill();
    expect((await follow('deleted_rows')).unmet).toEqual([]);
  });

  it('waits for a bucket that is down, and exports what is due when it is back', async () => {
    const restore = proxy.intercept({ before: () => 'broken' });
    await insertClicks(2_000, 2, hour(2));
    await shell.run('npx exportd export backfill $ID --start-at $END --end-at $(date -u +%FT%H:00:00Z)');
    const id = await exportId();
    await waitFor(async () => {
      const { body } = await stack.call('GET', `/batch_exports/${id}/`);
      return (body.condition as { cause: string }).cause === 'destination_unavailable';
    }, 'the bucket is known to be down');
    const back = async () => {
      restore();
      await waitForBackfill();
    };
    expect((await follow('bucket_is_down', { 1: back })).unmet).toEqual([]);
  });

  it('begins where another program ends', async () => {
    expect((await follow('coming_from')).unmet).toEqual([]);
    expect(await shell.run('cat exports.yaml')).toMatch(/# Seam: .* PostHog exports the intervals up to/);
    const { body } = await stack.call('GET', '/batch_exports/');
    const moved = (body.results as { id: string; name: string; start_at: string }[]).find(
      ({ name }) => name === 'Moved',
    );
    // The end of the first interval.
    expect(moved?.start_at).toBe(hourAgo(-2).toISOString());
    await stack.call('DELETE', `/batch_exports/${moved?.id ?? ''}/`);
  });

  it('rotates keys', async () => {
    const [, lines = ''] =
      /^```yaml\n(.*?)\n```$/ms.exec(readFileSync('src/guides/rotate_keys.md', 'utf8')) ?? [];
    const addLines = async () => {
      const path = (await shell.run('echo "$PWD/exports.yaml"')).trim();
      const document = readFileSync(path, 'utf8');
      writeFileSync(
        path,
        document.replace(
          /^( *)bucket_name:/m,
          (found, indent: string) => `${lines.replaceAll(/^/gm, indent)}\n${found}`,
        ),
      );
    };
    expect((await follow('rotate_keys', { 3: addLines })).unmet).toEqual([]);
  });

  it('checks an upgrade', async () => {
    await shell.run('npx exportd query setup');
    expect((await follow('upgrade')).unmet).toEqual([]);
  });
});
