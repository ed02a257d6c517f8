import { beforeAll, expect, it } from '@jest/globals';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { exportd } from './command_line.ts';

const database = useTestDatabase();
beforeAll(async () => {
  await database.pool.query(
    `create table clicks (id uuid primary key, name text not null, user_name text not null, details jsonb,
       happened_at timestamptz not null, received_at timestamptz not null)`,
  );
});

it('exportd source check compares a relation without a setting and drafts the view', async () => {
  // No control database is needed.
  const { code, stdout, stderr } = await exportd(
    { SOURCE_DATABASE_URL: database.url },
    'source',
    'check',
    '--events',
    'clicks',
  );
  expect(code).toBe(1);
  expect(stderr).toBe('exportd: Exports cannot read the source: 10 errors.\n');
  expect(stdout).toMatch(/^FAILED +public\.clicks +Column inserted_at is missing\.$/m);
  expect(stdout).toMatch(/^ok +public\.persons +table$/m);
  const [, sql = ''] = /^(create view public\.exportd_events as$[^]*;)$/m.exec(stdout) ?? [];
  await database.pool.query(sql);

  const checked = await exportd(
    { SOURCE_DATABASE_URL: database.url, EXPORTD_EVENTS_RELATION: 'exportd_events' },
    'source',
    'check',
    '--model',
    'events',
  );
  expect([checked.code, checked.stderr]).toEqual([0, '']);
  expect(checked.stdout).toContain('create index concurrently on "public"."clicks" (received_at, id);');
});

it('exportd doctor fails for a relation whose columns do not fit', async () => {
  const { stdout } = await exportd(
    { DATABASE_URL: database.url, EXPORTD_EVENTS_RELATION: 'clicks' },
    'doctor',
    '--json',
  );
  const checks = JSON.parse(stdout) as { check: string; ok: boolean; detail: string }[];
  expect(checks.find(({ check }) => check === 'source')).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/public\.clicks: Column inserted_at is missing\..*exportd source check/),
  });
});

it('exportd source map drafts view, index and grants from the catalogue, and shows the first rows', async () => {
  await database.pool.query(
    `create table orders_log (log_no bigint generated always as identity primary key, what text, customer_email text,
       payload jsonb, happened timestamptz, recorded timestamptz not null default clock_timestamp());
     insert into orders_log (what, customer_email, payload, happened)
       select 'ordered', 'a@example.com', '{"n": 1}', now() from generate_series(1, 30)`,
  );
  const map = (...args: string[]) =>
    exportd({ SOURCE_DATABASE_URL: database.url }, 'source', 'map', 'orders_log', ...args);
  const chosen = [
    '--column',
    'event=what',
    '--column',
    'distinct_id=customer_email',
    '--view',
    'orders_events',
  ];
  const { code, stdout, stderr } = await map(...chosen, '--team', '7');
  expect([code, stderr]).toEqual([0, '']);
  for (const line of [
    "  md5('orders_log ' || source.log_no::text)::uuid as uuid,  -- the primary key",
    '  source.what as event,',
    '  source.customer_email as distinct_id,',
    '  source.happened as "timestamp",  -- the only time that fits',
  ])
    expect(stdout).toContain(line);
  expect(stdout).toMatch(/^ {2}source\.recorded as inserted_at {2}-- its default is the clock; /m);
  expect(stdout).not.toContain('CHOOSE');
  const index =
    "create index concurrently on public.orders_log (recorded, (md5('orders_log ' || log_no::text)::uuid));";
  expect(stdout).toContain(index);
  expect(stdout.split('\n').filter((line) => line.startsWith('-- 7 '))).toHaveLength(20);
  const json = await map(...chosen, '--json');
  const { view } = JSON.parse(json.stdout) as { view: { sql: string } };
  await database.pool.query(view.sql);
  await database.pool.query(index);
  const checked = await exportd(
    { SOURCE_DATABASE_URL: database.url, EXPORTD_EVENTS_RELATION: 'orders_events' },
    'source',
    'check',
    '--model',
    'events',
  );
  expect([checked.code, checked.stderr]).toEqual([0, '']);

  for (const [args, message] of [
    [['--column', 'event=nothing'], /public\.orders_log has no column "nothing"\. It has: log_no, what/],
    [['--column', 'what=event'], /Events have no column "what"\. They have: team_id, uuid/],
    [['--column', 'inserted_at=payload'], /payload is jsonb, which cannot be inserted_at/],
    [['--column', 'event'], /Write --column name=column/],
  ] as const) {
    const failed = await map(...args);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringMatching(message)]);
  }
});
