import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { parseExports } from '../../../src/cli/apply/plan.ts';
import { fetchPosthogExports } from '../../../src/cli/import/posthog_exports.ts';
import { bounds } from '../../../src/config/bounds.ts';
import { type FakeServer, startFakeServer } from '../../destination/fake_server.ts';
import { exportd } from '../command_line.ts';
import {
  commentsIn,
  destination,
  posthogKey,
  recorded,
  type RecordedExport,
  recordedRun,
  startRecordedServer,
  team,
} from './recordings.ts';

const seam = '2026-11-02T00:00:00Z';
const environment = { POSTHOG_API_KEY: posthogKey };
const folder = mkdtempSync(join(tmpdir(), 'import-posthog-'));
afterAll(() => rmSync(folder, { recursive: true }));

let servers: FakeServer[] = [];
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()));
  servers = [];
});

const running = async (started: Promise<FakeServer>): Promise<FakeServer> => {
  const server = await started;
  servers.push(server);
  return server;
};

/** Imports from a recorded server. */
async function importFrom(exports: readonly RecordedExport[], ...options: readonly string[]) {
  const server = await running(startRecordedServer(exports));
  const url = ['--url', server.endpoint, '--project', String(team)];
  const result = await exportd(environment, 'import', 'posthog', ...url, '--seam', seam, ...options);
  expect(JSON.stringify(result)).not.toContain(posthogKey);
  return { ...result, server };
}

/** The fields that `exportd apply` reads of a printed file, by the names of the exports. */
const declaredIn = (text: string) =>
  Object.fromEntries(
    parseExports(text, {
      name: 'exports.yaml',
      folder,
      environment: new Proxy({}, { get: (_, name) => `value of ${String(name)}` }),
    }).map(({ name, fields }) => [name, fields]),
  );

describe('exportd import posthog', () => {
  it('prints a file for apply with what is equal, the seam and the variables of the secrets', async () => {
    const one = recorded({
      id: '0190a4d2-0000-0000-0000-00000000abcd',
      latest_runs: [recordedRun('2026-11-01T09:00:00Z', '2026-11-01T10:00:00Z')],
      destination: destination({ prefix: '/events/{year}/{month}', compression: 'gzip' }),
    });
    const { code, stdout, stderr, server } = await importFrom([one]);
    expect([code, stderr]).toEqual([0, '']);
    expect(
      stdout.replace(new URL(server.endpoint).host, 'posthog.test').replace(/read at \S+/, 'read at <time>'),
    ).toMatchSnapshot();
    expect(declaredIn(stdout)).toEqual({
      'Events by the hour': {
        name: 'Events by the hour',
        model: 'events',
        interval: 'hour',
        start_at: '2026-11-02T01:00:00.000Z',
        destination: {
          type: 'S3',
          config: {
            bucket_name: 'analytics-exports',
            region: 'eu-central-1',
            prefix: 'events/{year}/{month}',
            file_format: 'JSONLines',
            compression: 'gzip',
            aws_access_key_id: 'value of AWS_ACCESS_KEY_ID',
            aws_secret_access_key: 'value of AWS_SECRET_ACCESS_KEY',
          },
        },
      },
    });
    const comments = commentsIn(stdout);
    expect(comments).toContain(`{"end_at": "${seam}"}`);
    expect(comments).toContain('dates of its prefix are those of the start');
    expect(server.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `GET /api/projects/${team}/batch_exports/?limit=100&offset=0`,
    ]);
  });

  it('reads every page from the given address, and only reads', async () => {
    const exports = Array.from({ length: 5 }, (_, index) => recorded({ name: `Export ${index}` }));
    const { stdout, server } = await importFrom(exports, '--json');
    const { exports: translated } = JSON.parse(stdout) as { exports: { posthog: { name: string } }[] };
    expect(translated.map(({ posthog }) => posthog.name)).toEqual(exports.map(({ name }) => name));
    expect(
      server.received.map(({ method, path }) => [
        method,
        new URL(path, 'http://x').searchParams.get('offset'),
      ]),
    ).toEqual([
      ['GET', '0'],
      ['GET', '2'],
      ['GET', '4'],
    ]);
  });

  it.each(['Snowflake', 'BigQuery', 'Postgres', 'Redshift', 'Databricks', 'HTTP', 'AzureBlob'])(
    'leaves out one that writes to %s, and says so',
    async (type) => {
      const { code, stdout } = await importFrom([
        recorded({
          name: 'Elsewhere',
          destination: { type, config: { password: 'hunter2' }, integration: 3 },
        }),
      ]);
      expect(code).toBe(0);
      expect(declaredIn(stdout)).toEqual({});
      expect(commentsIn(stdout)).toContain(`"Elsewhere" (0190a4d2-0000-0000-0000-`);
      expect(commentsIn(stdout)).toContain(`It writes to ${type}. exportd writes to S3 only.`);
      expect(stdout).not.toContain('hunter2');
    },
  );

  it.each([
    [{ model: 'sessions' }, 'Its model is sessions. exportd exports events and persons.'],
    [{ model: 'hogql', hogql_query: 'select 1 from groups' }, 'Its query: select 1 from groups'],
    [{ interval: 'every 7 minutes' }, 'Its interval is "every 7 minutes"'],
    [{ interval: 'day', timezone: 'Mars/Olympus' }, 'Its time zone is "Mars/Olympus"'],
    [{ end_at: '2026-11-01T00:00:00Z' }, 'It ends at 2026-11-01T00:00:00Z, before the first interval'],
  ])('leaves out one that exportd has no equal of: %j', async (more, reason) => {
    const { stdout } = await importFrom([recorded(more), recorded({ name: 'Another' })]);
    expect(Object.keys(declaredIn(stdout))).toEqual(['Another']);
    expect(commentsIn(stdout)).toContain(reason);
  });

  it.each([
    [
      { filters: [{ type: 'person', key: 'plan', operator: 'near', value: 'pro' }] },
      /Filter 1 cannot be used here: The 'operator' of a filter/,
    ],
    [
      { filters: [{ type: 'hogql', key: 'person.cohort = 1' }] },
      /Filter 1 cannot be used here: Unable to resolve/,
    ],
    [
      { hogql_query: 'select count() as n from events group by event' },
      /The query cannot be used here: .*GROUP BY is not supported/,
    ],
    [
      { destination: destination({ prefix: 'events/{tenant}' }) },
      /The destination cannot be used here: The prefix contains the unknown variable \{tenant\}/,
    ],
    [
      { destination: destination({ kms_key_id: 'key' }) },
      /The destination cannot be used here: The field 'kms_key_id' requires/,
    ],
    [
      { destination: destination({}, 'S3Compatible', 12) },
      /Fill in endpoint_url: PostHog keeps it in the integration 12/,
    ],
  ])('keeps what exportd rejects, for a person to decide: %j', async (more, sentence) => {
    const { stdout } = await importFrom([recorded(more)]);
    const comments = commentsIn(stdout);
    expect(comments).toMatch(new RegExp(`DECIDE: ${sentence.source}`));
    expect(comments).toContain('DECIDE marks 1 problem. "exportd apply" rejects the file');
    const [declared] = Object.values(declaredIn(stdout));
    expect(JSON.stringify(declared)).toMatch(
      /near|cohort|GROUP BY|group by|tenant|kms_key_id|to be filled in/,
    );
  });

  it('says what is different, sentence by sentence', async () => {
    const { stdout } = await importFrom([
      recorded({
        name: 'Persons',
        model: 'persons',
        interval: 'day',
        timezone: 'America/New_York',
        offset_hour: 3,
        hogql_modifiers: { a: 1 },
        filters: [{ type: 'person', key: 'plan', operator: 'exact', value: ['pro'], label: 'Plan' }],
        latest_runs: [
          recordedRun('2026-10-31T07:00:00Z', '2026-11-01T08:00:00Z', 'Failed'),
          recordedRun('2026-10-30T07:00:00Z', '2026-10-31T07:00:00Z'),
        ],
        destination: destination(
          {
            file_format: 'Parquet',
            compression: 'zstd',
            max_file_size_mb: 100,
            exclude_events: ['$pageleave'],
            legacy_parquet_extension: true,
            strange: 1,
          },
          'AwsS3',
          4,
        ),
      }),
      recorded({ name: 'Persons', destination: destination({ bucket_name: 'other.bucket' }) }),
    ]);
    const comments = commentsIn(stdout);
    for (const sentence of [
      'Its interval from 2026-10-31T07:00:00Z to 2026-11-01T08:00:00Z is Failed in PostHog: retry it there.',
      'The fields label of its filters are left out.',
      'The fields hogql_modifiers are left out: exportd has none.',
      'The fields strange of its config are left out: exportd has none.',
      'Its include_events and exclude_events have no effect on persons, and are left out.',
      'Its credentials are those of the integration 4 of PostHog. If that has a role, write role_arn',
      'Files end in .parquet here.',
      'Each interval has a manifest here, in the folder _manifests.',
      'Readers take the highest person_version',
      'Another export has its name, which identifies an export here: it is "Persons (2)" now.',
      'Set AWS_ACCESS_KEY_ID_ANALYTICS_EXPORTS, AWS_ACCESS_KEY_ID_OTHER_BUCKET, ',
    ])
      expect(comments).toContain(sentence);
    expect(declaredIn(stdout).Persons).toMatchObject({
      timezone: 'America/New_York',
      offset_hour: 3,
      start_at: '2026-11-03T08:00:00.000Z',
      destination: {
        config: {
          filters: [{ type: 'person', key: 'plan', operator: 'exact', value: ['pro'] }],
          aws_access_key_id: 'value of AWS_ACCESS_KEY_ID_ANALYTICS_EXPORTS',
        },
      },
    });
  });

  it('knows the weeks of versions that return no time zone, and doubts them if a run ends elsewhere', async () => {
    const { timezone: _, offset_day: __, offset_hour: ___, ...old } = recorded({ interval: 'week' });
    const thursday = recordedRun('2026-10-22T00:00:00Z', '2026-10-29T00:00:00Z');
    const monday = recordedRun('2026-10-19T00:00:00Z', '2026-10-26T00:00:00Z');
    const sure = await importFrom([{ ...old, latest_runs: [thursday] }]);
    expect(declaredIn(sure.stdout)['Events by the hour']).toMatchObject({
      offset_day: 4,
      start_at: '2026-11-12T00:00:00.000Z',
    });
    expect(commentsIn(sure.stdout)).not.toContain('check timezone');
    const unsure = await importFrom([{ ...old, latest_runs: [monday] }]);
    expect(commentsIn(unsure.stdout)).toContain('Its newest run ends at 2026-10-26T00:00:00Z, where no week');
  });

  it('takes the query from the schema where the export has it there only', async () => {
    const schema = { fields: [], values: {}, hogql_query: 'SELECT uuid, event FROM events' };
    const { stdout } = await importFrom([recorded({ schema })]);
    expect(declaredIn(stdout)['Events by the hour']).toMatchObject({ dialect_query: schema.hogql_query });
    expect(commentsIn(stdout)).toContain('PostHog adds the column _inserted_at to the files of a query.');
  });

  it('lets no text of PostHog out of its comment', async () => {
    const name = 'x\r\n  - name: evil\u0085\u2028exports: []';
    const { stdout } = await importFrom([
      recorded({ name, destination: { type: 'Snow\rflake\nexports:\n  - name: evil', config: {} } }),
      recorded({ name, interval: 'hour' }),
    ]);
    expect(Object.keys(declaredIn(stdout))).toEqual([name]);
    expect(stdout.split(/\r\n|\r|\n/).filter((line) => /^ *- name: evil/.test(line))).toEqual([]);
  });

  it('prints a file without exports for a project that has none', async () => {
    const { code, stdout } = await importFrom([]);
    expect([code, declaredIn(stdout)]).toEqual([0, {}]);
  });

  describe('from a file', () => {
    const path = join(folder, 'export.json');
    const importFile = (content: string, ...options: readonly string[]) => {
      writeFileSync(path, content);
      return exportd({}, 'import', 'posthog', '--file', path, '--seam', seam, ...options);
    };

    it.each([
      ['one export', recorded()],
      ['a list', [recorded()]],
      ['a page', { count: 1, next: null, previous: null, results: [recorded()] }],
    ])('reads %s', async (_, value) => {
      const { code, stdout } = await importFile(JSON.stringify(value));
      expect([code, Object.keys(declaredIn(stdout))]).toEqual([0, ['Events by the hour']]);
    });

    it.each([
      ['{', 'export.json is not JSON.'],
      ['7', 'export.json: item 1 is no batch export of PostHog.'],
      ['{}', 'item 1 is no batch export of PostHog, see name.'],
      [
        JSON.stringify([recorded(), { ...recorded(), start_at: 'soon' }]),
        'item 2 is no batch export of PostHog, see start_at. Expected an ISO 8601 time',
      ],
      [JSON.stringify({ ...recorded(), filters: 'all' }), "see filters. 'filters' is no list."],
      [JSON.stringify({ results: [], next: 'https://x' }), 'is one page of a list that has others'],
      [' '.repeat(bounds.exportsFile.max + 1), 'has more than 4 MiB'],
    ])('says what is wrong with %.30s', async (content, message) => {
      const { code, stdout, stderr } = await importFile(content);
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)]);
    });

    it('says that there is none', async () => {
      const { code, stderr } = await exportd({}, 'import', 'posthog', '--file', join(folder, 'none.json'));
      expect([code, stderr]).toEqual([1, expect.stringContaining('none.json cannot be read (ENOENT)')]);
    });
  });

  it.each([
    [[], 'Pass --url and --project, or --file.'],
    [['--url', 'https://x.test', '--project', '7', '--file', 'x'], 'Pass either --url or --file.'],
    [['--url', 'eu.posthog.com', '--project', '7'], '--url is no URL.'],
    [['--url', 'http://eu.posthog.com', '--project', '7'], '--url must begin with https://'],
    [['--url', 'ftp://localhost', '--project', '7'], '--url must begin with https://'],
    [['--url', 'https://me:hunter2@eu.posthog.com', '--project', '7'], '--url must have no user'],
    [['--url', 'https://eu.posthog.com', '--project', '../users'], '--project is the id of a project'],
    [
      ['--url', 'https://eu.posthog.com', '--project', '7', '--key', `${posthogKey}\n`],
      'characters that no key has',
    ],
    [['--url', 'https://eu.posthog.com', '--project', '7', '--key', ''], 'No API key of PostHog'],
    [['--file', 'x', '--seam', 'tomorrow'], '--seam is an ISO 8601 time with an offset'],
  ])('rejects %j', async (options, message) => {
    const { code, stdout, stderr } = await exportd(environment, 'import', 'posthog', ...options);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)]);
    for (const secret of ['hunter2', posthogKey]) expect(stderr).not.toContain(secret);
  });

  describe('with a server that', () => {
    let endpoint: string;
    let answer: (response: Parameters<Parameters<typeof startFakeServer>[0]>[1]) => void;
    let server: FakeServer;
    beforeAll(async () => {
      server = await startFakeServer((_, response) => answer(response));
      endpoint = server.endpoint;
    });
    afterAll(() => server.close());

    const body =
      (status: number, text: string, headers = {}): typeof answer =>
      (response) =>
        void response.writeHead(status, headers).end(text);

    it.each([
      ['rejects the key', body(401, '{}'), 'rejects the API key. Pass a personal API key'],
      ['denies access', body(403, '{}'), 'It needs the scope batch_export:read and access to the project.'],
      ['has no such project', body(404, '{}'), `has no batch exports of project ${team}`],
      ['fails', body(500, 'oops'), 'responded with status 500.'],
      ['limits requests', body(429, '{}'), 'responded with status 429.'],
      ['is no PostHog', body(200, '<html>'), 'did not respond with JSON. Is it PostHog?'],
      ['has another API', body(200, '{"ok": true}'), 'did not respond with a list of batch exports.'],
      [
        'redirects',
        body(302, '', { location: 'https://us.posthog.com/login' }),
        'redirects to https://us.posthog.com. The API key is not sent there',
      ],
      ['closes the connection', (response) => void response.destroy(), 'Cannot connect to http://127.0.0.1:'],
      ['sends too much', body(200, '1'.repeat(bounds.exportsFile.max + 1)), 'has more than 4 MiB'],
      ['never ends', body(200, '{"results": [], "next": "https://x"}'), 'does not end.'],
    ] satisfies [string, typeof answer, string][])('%s', async (_, respond, message) => {
      answer = respond;
      const url = ['--url', endpoint, '--project', String(team)];
      const { code, stdout, stderr } = await exportd(environment, 'import', 'posthog', ...url);
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)]);
      expect(stderr).not.toContain(posthogKey);
      expect(stderr).not.toMatch(/\n\s+at /);
    });

    it('does not respond', async () => {
      answer = () => undefined;
      const reading = fetchPosthogExports({ url: endpoint, project: '7', key: posthogKey }, 50);
      await expect(reading).rejects.toThrow(`${endpoint} did not respond within 0.05 s.`);
    });

    it('is not there', async () => {
      const url = ['--url', 'http://127.0.0.1:1', '--project', '7'];
      const { stderr } = await exportd(environment, 'import', 'posthog', ...url);
      expect(stderr).toMatch(/Cannot connect to http:\/\/127\.0\.0\.1:1 \(.*\)\./);
    });
  });
});
