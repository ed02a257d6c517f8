import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { deleteExpired } from '../../src/decisions/due_maintenance.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';

const database = useTestDatabase();

const hour = 3_600_000;
const count = async (table: string) =>
  (await database.pool.query<{ count: number }>(`select count(*) as count from exportd.${table}`)).rows[0]
    ?.count;

it('rows older than the retention are deleted in batches, and the journal keeps everything', async () => {
  const { create } = createCommander(openJournal(database.pool), quickPolicies());
  await create();
  const events = await count('journal_events');
  await database.pool.query(
    `insert into exportd.log_lines (team_id, batch_export_id, level, message, timestamp)
     select 1, $1, 'INFO', 'line ' || n, clock_timestamp() - age
     from unnest(array[interval '61 minutes', interval '59 minutes']) age, generate_series(1, 6000) n`,
    [randomUUID()],
  );
  await database.pool.query(
    `with webhook as (
       insert into exportd.webhooks (id, team_id, url, events, secret)
       values (gen_random_uuid(), 1, 'https://example.com', '{}', '') returning id),
     notification as (
       insert into exportd.notifications (id, type, team_id, data, created_at)
       select gen_random_uuid(), 'run.failed', 1, '{}', clock_timestamp() - age
       from unnest(array[interval '61 minutes', interval '59 minutes']) age, generate_series(1, 2) returning id, created_at)
     insert into exportd.webhook_deliveries (notification_id, webhook_id, status)
     select notification.id, webhook.id,
       case when row_number() over (order by notification.created_at) = 1 then 'pending' else 'delivered' end
     from notification, webhook`,
  );
  await database.pool.query(
    `insert into exportd.verifications (batch_export_id, team_id, user_id, data_interval_start, data_interval_end, deep,
       created_at)
     select gen_random_uuid(), 1, 1, now(), now(), true, clock_timestamp() - age
     from unnest(array[interval '61 minutes', interval '59 minutes']) age`,
  );
  expect(await deleteExpired(database.pool, hour)).toBe(6_002);
  expect([await count('log_lines'), await count('notifications'), await count('webhook_deliveries')]).toEqual(
    [6_000, 3, 3],
  );
  expect(await count('verifications')).toBe(1);
  expect(await deleteExpired(database.pool, hour)).toBe(0);
  expect(await count('journal_events')).toBe(events);
});
