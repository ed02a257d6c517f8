import type { Pool } from 'pg';
import { teamId } from '../project.ts';
import { queryData } from './query_cases.ts';

/** Inserts the rows of queries_data.json into the source relations. */
export async function insertQueryData(pool: Pool): Promise<void> {
  const { persons, person_distinct_ids, events, groups, orders, plans } = queryData;
  await pool.query(`create table orders (team_id int, id bigint, distinct_id text, total numeric, paid_at timestamptz);
    create table plans (name text, price int)`);
  const insert = (table: string, columns: string, rows: readonly object[]): Promise<unknown> =>
    pool.query(
      `insert into ${table} (${columns}) select ${columns} from jsonb_populate_recordset(null::${table}, $1)`,
      [JSON.stringify(rows.map((row) => ({ ...row, team_id: teamId })))],
    );
  await insert(
    'persons',
    'team_id, id, properties, created_at, is_deleted',
    persons.map((person) => ({ ...person, is_deleted: false })),
  );
  await insert(
    'person_distinct_ids',
    'team_id, distinct_id, person_id, is_deleted',
    person_distinct_ids.map((row) => ({ ...row, is_deleted: false })),
  );
  await insert(
    'events',
    'team_id, uuid, event, distinct_id, person_id, properties, person_properties, timestamp, created_at',
    events.map(({ person, ...event }, index) => ({
      ...event,
      uuid: `10000000-0000-0000-0000-${String(index + 1).padStart(12, '0')}`,
      person_id: person === null ? null : persons[person - 1]?.id,
      created_at: event.timestamp,
    })),
  );
  await insert(
    'groups',
    'team_id, group_type_index, group_key, group_properties, created_at, updated_at',
    groups.map(({ index, key, properties, ...group }) => ({
      ...group,
      group_type_index: index,
      group_key: key,
      group_properties: properties,
    })),
  );
  await insert('orders', 'team_id, id, distinct_id, total, paid_at', orders);
  await insert('plans', 'name, price', plans);
}
