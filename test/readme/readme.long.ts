import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { codeBlocks } from './readme_blocks.ts';
import { createCloneFolder, type CloneFolder, type ShellRun } from './shell.ts';

/** Runs commands to their end. @returns what they printed. @throws Error with it when one of them fails. */
async function run(
  clone: CloneFolder,
  commands: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const shell = clone.start(commands, environment);
  const code = await shell.ended;
  if (code !== 0) throw new Error(`Exit code ${String(code)} of:\n${commands}\n${shell.output()}`);
  return shell.output();
}

describe('the quick start of the README', () => {
  const [start = '', commandLine = ''] = codeBlocks('Quick start', 'sh');
  let clone: CloneFolder;
  let stack: ShellRun;
  beforeAll(async () => {
    clone = createCloneFolder();
    stack = clone.start(start, { EXPORTD_PORT: '0' });
    const demoFile = join(clone.path, '.exportd/demo.json');
    await stack.waitFor(() => existsSync(demoFile), 'demo.json exists');
  });
  afterAll(async () => {
    await stack.stop('SIGINT');
    clone.remove();
  });

  it('starts the demo and prints its addresses', () => {
    expect(start).toBe('npm start\n');
    expect(stack.output()).toContain('Temporal UI');
  });

  it('runs exportd by npx', async () => {
    expect(commandLine).toMatch(/^npx exportd status/m);
    const output = await run(clone, 'npx exportd status', { PATH: process.env.PATH ?? '' });
    expect(output).toContain('Demo');
  });

  it('backfills what is missing from the command line, exports nothing twice, and verifies it', async () => {
    // With curl, since npx takes seconds of CPU each time.
    const backfilled = `
      demo() { node -p "require('./.exportd/demo.json').$1"; }
      BACKFILLS="$(demo base_url)/api/environments/$(demo project_id)/batch_exports/$ID/backfills/" KEY="$(demo api_key)"
      until curl -sS -H "Authorization: Bearer $KEY" "$BACKFILLS" | node -e '
        const { results } = JSON.parse(require("fs").readFileSync(0));
        process.exit(results.length === 2 && results.every(({ status }) => status === "Completed") ? 0 : 1)'; do sleep 0.5; done`;
    const [beforeVerify = '', verify = ''] = commandLine.split(/^(?=npx exportd verify)/m);
    expect(verify).toContain('--deep');
    const output = await run(clone, [beforeVerify, backfilled, verify].join('\n'));
    expect(output).toMatch(/^4\d manifests, 4\d files, [\d,]+ rows: no findings\.$/m);
    const generations = [...output.matchAll(/Z {2}(\d+) +\d+ +\d+ +\d+ +0 +0$/gm)].map(
      ([, number]) => number,
    );
    expect(generations.length).toBeGreaterThan(40);
    expect(new Set(generations)).toEqual(new Set(['1']));
  });

  it('is continued by the reference of the HTTP API, which creates and deletes an export', async () => {
    const [tryIt = ''] = codeBlocks('Try it', 'sh', 'src/http/README.md');
    expect(tryIt).toContain('-X DELETE');
    const output = await run(clone, tryIt);
    // The body of every error.
    expect(output).not.toMatch(/"type":"[a-z_]+","code":/);
    expect(output).toContain('another/{year}/{month}');
    expect(output).toContain('"results":[[');
  });
});

describe("the README's way to your own PostgreSQL and bucket", () => {
  const heading = 'Use your own PostgreSQL and bucket';
  const clicks = 240;
  let clone: CloneFolder;
  let control: TestDatabase;
  let source: TestDatabase;
  let bucket: TestBucket;
  let processes: ShellRun | undefined;
  beforeAll(async () => {
    clone = createCloneFolder();
    [control, source, bucket] = await Promise.all([
      createTestDatabase(),
      createTestDatabase(),
      createBucket(),
    ]);
    await source.pool.query(
      `create table clicks (id uuid primary key default gen_random_uuid(), name text not null, user_name text not null,
         details jsonb not null, happened_at timestamptz not null, received_at timestamptz not null)`,
    );
    await source.pool.query(
      `insert into clicks (name, user_name, details, happened_at, received_at)
       select 'click', 'user ' || number % 7, jsonb_build_object('number', number), at, at
       from generate_series(1, $1::int) as number, lateral (select $2::timestamptz + number * interval '29 seconds') as moment (at)`,
      [clicks, hourAgo(3)],
    );
  });
  afterAll(async () => {
    await processes?.stop('SIGTERM');
    await control.drop();
    await source.drop();
    clone.remove();
  });

  /** The README's commands with addresses that exist. */
  function withTestAddresses(commands: string, port: number): string {
    const addresses: Record<string, string> = {
      DATABASE_URL: control.url,
      SOURCE_DATABASE_URL: source.url,
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      EXPORTD_BASE_URL: `http://127.0.0.1:${port}`,
    };
    let replaced = commands;
    for (const [name, value] of Object.entries(addresses)) {
      const line = new RegExp(`^export ${name}=\\S+`, 'm');
      if (!line.test(replaced)) throw new Error(`The README does not set ${name}.`);
      replaced = replaced.replace(line, `export ${name}='${value}'`);
    }
    return replaced
      .replace('--bucket my-bucket', `--bucket ${bucket.bucket} --endpoint-url ${bucket.endpoint}`)
      .replace('--region eu-central-1', `--region ${bucket.region}`)
      .replace('AWS_ACCESS_KEY_ID=…', `AWS_ACCESS_KEY_ID='${bucket.accessKeyId}'`)
      .replace('AWS_SECRET_ACCESS_KEY=…', `AWS_SECRET_ACCESS_KEY='${bucket.secretAccessKey}'`);
  }

  it('starts all the rest with one line', async () => {
    const [line = ''] = codeBlocks(heading, 'sh');
    expect(line).toMatch(/^SOURCE_DATABASE_URL=\S+ EXPORTD_DATA_DIR=\S+ npm start\n$/);
    const withAddresses = line
      .replace(/(?<=^SOURCE_DATABASE_URL=)\S+/, `'${source.url}'`)
      .replace(/(?<=EXPORTD_DATA_DIR=)\S+/, `'${join(clone.path, '.exportd-trial')}'`);
    const stack = clone.start(withAddresses, { EXPORTD_PORT: '0' });
    try {
      await stack.waitFor(() => stack.output().includes('Press Ctrl-C to stop.'), 'the stack is ready');
      expect(stack.output()).toMatch(/API key +exk_/);
      expect(stack.output()).toMatch(/Bucket +exportd-trial/);
    } finally {
      await stack.stop('SIGINT');
    }
  });

  it('exports a table of another name through a view', async () => {
    const [view = ''] = codeBlocks(heading, 'sql');
    await source.pool.query(view);
    const [commands = ''] = codeBlocks('By hand', 'sh', '.config/README.md');
    const ports = await assignPorts(join(clone.path, 'ports.json'), ['http']);
    const environment = {
      EXPORTD_PORT: String(ports.http),
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_SETTLE_DELAY: '0s',
      EXPORTD_TASK_QUEUE_PREFIX: `readme-${randomUUID()}`,
      EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
    };
    const rest = `
ID=$(npx exportd export list --json | node -p 'JSON.parse(require("fs").readFileSync(0)).results[0].id')
npx exportd export backfill $ID --start-at ${hourAgo(3).toISOString()} --end-at ${hourAgo(1).toISOString()}
until npx exportd backfill list $ID | grep -q Completed; do sleep 1; done
npx exportd verify $ID --deep --from ${hourAgo(3).toISOString()} --to ${hourAgo(1).toISOString()}
echo README is done
wait`;
    const shell = clone.start(withTestAddresses(commands, ports.http) + rest, environment);
    processes = shell;
    await shell.waitFor(() => shell.output().includes('README is done'), 'the rows are verified');
    expect(shell.output()).toContain(`${clicks} rows`);
  });
});
