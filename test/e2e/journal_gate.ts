import { randomInt } from 'node:crypto';
import pg from 'pg';
import { waitFor } from '../setup/wait_for.ts';
import type { Stack } from './stack.ts';

/** A gate that appends to the journal wait at until the test opens it. */
interface JournalGate {
  /** Resolves when an append is waiting. */
  readonly reached: () => Promise<void>;
  /** Opens the gate; idempotent. */
  readonly open: () => Promise<void>;
}

/** Events of a type whose data contain `data`, of one stream or of all. */
interface BlockedEvent {
  readonly run_id?: string;
  readonly type: string;
  readonly data?: object;
}

/** Blocks events within their transaction. */
export async function blockEvent(
  { databaseUrl, pool }: Pick<Stack, 'databaseUrl' | 'pool'>,
  event: BlockedEvent,
): Promise<JournalGate> {
  await pool.query(trigger);
  const lock = randomInt(2 ** 31);
  const lockHolder = new pg.Client({ connectionString: databaseUrl, application_name: 'a test' });
  lockHolder.on('error', () => undefined);
  await lockHolder.connect();
  await lockHolder.query('select pg_advisory_lock($1::bigint)', [lock]);
  await lockHolder.query('insert into test_gates values ($1, $2, $3, $4)', [
    event.run_id ?? null,
    event.type,
    JSON.stringify(event.data ?? {}),
    lock,
  ]);
  const release = async (): Promise<void> => {
    await lockHolder.query('delete from test_gates where lock = $1', [lock]);
    await lockHolder.end();
  };
  let released: Promise<void> | undefined;
  return {
    reached: async () => {
      await waitFor(async () => {
        const { rows } = await lockHolder.query(
          `select from pg_locks where locktype = 'advisory' and not granted and objid = $1::bigint::oid`,
          [lock],
        );
        return rows.length > 0;
      }, `${event.type} reaches the journal`);
    },
    open: () => (released ??= release()),
  };
}

const trigger = `
  create table if not exists test_gates (run_id uuid, event_type text, data jsonb, lock bigint);
  create or replace function wait_for_test() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock(gate.lock) from test_gates gate
      where coalesce(gate.run_id = new.stream_id, true) and gate.event_type = new.event_type and new.data @> gate.data;
    return new;
  end $$;
  create or replace trigger wait_for_test before insert on exportd.journal_events
    for each row execute function wait_for_test();`;
