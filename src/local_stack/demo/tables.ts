import type { Pool } from '../../journal/database.ts';
import { defineProperty } from '../../queries/property_definitions.ts';
import { addWarehouseTable, listWarehouseTables } from '../../queries/warehouse_tables.ts';

/** In a separate schema, to avoid conflicts with tables of the user. */
const relation = { schema: 'exportd_demo', name: 'stripe_charges', team_column: 'team_id' } as const;
const fullName = `${relation.schema}.${relation.name}`;

/** A charge for each purchase; some failed. */
const charges = `
  insert into ${fullName} (team_id, id, event_uuid, distinct_id, amount, currency, status, created)
  select team_id, 'ch_' || translate(uuid::text, '-', ''), uuid, distinct_id, (properties->>'revenue')::numeric,
    lower(properties->>'currency'),
    case when hashtext(uuid::text) % 20 = 0 then 'failed' else 'succeeded' end, timestamp + interval '2 seconds'
  from public.events where team_id = $1 and event = 'purchase'`;

/** Adds a warehouse table and numeric property definitions to the demo project. */
export async function ensureDemoTables(pool: Pool, projectId: number): Promise<void> {
  await pool.query(`create schema if not exists ${relation.schema};
    create table if not exists ${fullName} (team_id integer not null, id text not null, event_uuid uuid not null,
      distinct_id text not null, amount numeric(12, 2) not null, currency text not null, status text not null,
      created timestamptz not null, primary key (team_id, id))`);
  await pool.query(`delete from ${fullName} where team_id = $1`, [projectId]);
  await pool.query(charges, [projectId]);
  const name = 'stripe.charges';
  const registered = await listWarehouseTables(pool, projectId);
  if (!registered.some((table) => table.name === name))
    await addWarehouseTable(pool, { team_id: projectId, name, relation });
  await defineProperty(pool, { team_id: projectId, scope: 'event', name: 'revenue', type: 'numeric' });
  await defineProperty(pool, {
    team_id: projectId,
    scope: 'person',
    name: 'lifetime_value',
    type: 'numeric',
  });
}
