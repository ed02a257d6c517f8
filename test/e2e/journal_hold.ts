import { randomInt } from 'node:crypto';
import pg from 'pg';
import { until } from '../setup/until.ts';
import type { Stack } from './stack.ts';

/** A place in the journal at which whoever wants to write has to wait. */
export interface JournalHold {
  /** Resolves when somebody waits. */
  readonly reached: () => Promise<void>;
  /** Lets them go on; twice is as good as once. */
  readonly release: () => Promise<void>;
}

/** Holds events of a type whose data contain `data` back from a run's stream, in the middle of their transaction. */
export async function holdEvent(
  { databaseUrl, pool }: Pick<Stack, 'databaseUrl' | 'pool'>,
  event: { readonly run_id: string; readonly type: string; readonly data?: object },
): Promise<JournalHold> {
  await pool.query(trigger);
  const lock = randomInt(2 ** 31);
  const holder = new pg.Client({ connectionString: databaseUrl, application_name: 'a test' });
  holder.on('error', () => undefined);
  await holder.connect();
  await holder.query('select pg_advisory_lock($1::bigint)', [lock]);
  await holder.query('insert into test_holds values ($1, $2, $3, $4)', [
    event.run_id,
    event.type,
    JSON.stringify(event.data ?? {}),
    lock,
  ]);
  const release = async (): Promise<void> => {
    await holder.query('delete from test_holds where lock = $1', [lock]);
    await holder.end();
  };
  let released: Promise<void> | undefined;
  return {
    reached: async () => {
      await until(async () => {
        const { rows } = await holder.query(
          `select from pg_locks where locktype = 'advisory' and not granted and objid = $1::bigint::oid`,
          [lock],
        );
        return rows.length > 0;
      }, `${event.type} is about to be written`);
    },
    release: () => (released ??= release()),
  };
}

const trigger = `
  create table if not exists test_holds (run_id uuid, event_type text, data jsonb, lock bigint);
  create or replace function wait_for_test() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock(hold.lock) from test_holds hold
      where hold.run_id = new.stream_id and hold.event_type = new.event_type and new.data @> hold.data;
    return new;
  end $$;
  create or replace trigger wait_for_test before insert on exportd.journal_events
    for each row execute function wait_for_test();`;
