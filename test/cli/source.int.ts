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
    ...['source', 'check', '--events', 'clicks'],
  );
  expect(code).toBe(1);
  expect(stderr).toBe('exportd: Exports cannot read the source: 10 errors.\n');
  expect(stdout).toMatch(/^FAILED +public\.clicks +Column inserted_at is missing\.$/m);
  expect(stdout).toMatch(/^ok +public\.persons +table$/m);
  const [, sql = ''] = /^(create view public\.exportd_events as$[^]*;)$/m.exec(stdout) ?? [];
  await database.pool.query(sql);

  const checked = await exportd(
    { SOURCE_DATABASE_URL: database.url, EXPORTD_EVENTS_RELATION: 'exportd_events' },
    ...['source', 'check', '--model', 'events'],
  );
  expect([checked.code, checked.stderr]).toEqual([0, '']);
  expect(checked.stdout).toContain('create index concurrently on "public"."clicks" (received_at, id);');
});

it('exportd doctor fails for a relation whose columns do not fit', async () => {
  const { stdout } = await exportd(
    { DATABASE_URL: database.url, EXPORTD_EVENTS_RELATION: 'clicks' },
    ...['doctor', '--json'],
  );
  const checks = JSON.parse(stdout) as { check: string; ok: boolean; detail: string }[];
  expect(checks.find(({ check }) => check === 'source')).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/public\.clicks: Column inserted_at is missing\..*exportd source check/),
  });
});
