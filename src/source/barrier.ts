import type pg from 'pg';
import type { BarrierState, BlockingTransaction, UnsettledBarrier } from '../domain/barrier.ts';
import { hidesRowsSql, type Relations } from './relations.ts';
import type { BarrierCheck } from './source.ts';
import { type ReadTransaction, type SourceConnections, SourceIsStandby } from './source_connection.ts';

type Connection = Pick<pg.ClientBase, 'query'>;

/** Something that blocks a barrier, as a log line names it. */
interface Described {
  readonly description: string;
}

/** An open or prepared transaction, and when it started or was prepared (ISO 8601); null where the role may not see it. */
interface Dated extends Described {
  readonly since: string | null;
}

/** A prepared transaction. It has no session, and survives a restart of the server. */
interface PreparedTransaction extends Dated {
  readonly id: string;
}

/** A cutoff and the time after it, in milliseconds, in which a transaction that starts may still use an earlier clock. */
interface SettledCutoff {
  readonly cutoff: string;
  readonly settleMs: number;
}

/**
 * Open transactions of this database that may write rows below a cutoff, or all that may write rows.
 *
 * A transaction that starts later than the cutoff and the settle time can write rows below the cutoff only with an
 * `inserted_at` of the client. It blocks if it has written already, which its `transactionid` lock shows. Otherwise every
 * idle transaction would block backfills of old intervals. A transaction without a visible start blocks: the role may
 * not see it, its session does not track its activity, or it has just started.
 *
 * Sessions that cannot write rows are excluded, because a vacuum holds its id for hours: processes without a database or
 * a user (autovacuum; an unprivileged role does not see the type of another user's process), a running VACUUM (it cannot
 * be part of a transaction), and backend types that only read. A process without any information is assumed to write.
 *
 * `pg_locks` is read once, so that both locks of a transaction are seen as of one moment.
 */
const openTransactionsQuery = `
  with open as materialized (
    select pid, virtualtransaction, bool_or(locktype = 'transactionid') as has_written from pg_catalog.pg_locks
    where locktype in ('virtualxid', 'transactionid') and mode = 'ExclusiveLock' and granted and pid is not null
    group by pid, virtualtransaction having bool_or(locktype = 'virtualxid'))
  select open.virtualtransaction as virtual_transaction, open.pid,
    to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as backend_start,
    to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as since,
    format('pid %s (application %s, role %s), transaction %s', open.pid,
      coalesce(nullif(a.application_name, ''), 'unknown'), coalesce(a.usename, 'unknown'),
      coalesce('open for ' || date_trunc('second', clock_timestamp() - a.xact_start),
        'whose start is hidden: grant pg_read_all_stats to wait for fewer transactions')) as description
  from open left join pg_catalog.pg_stat_activity a on a.pid = open.pid
  where ($2::timestamptz is null or open.has_written or a.xact_start is null
      or a.xact_start <= $2::timestamptz + make_interval(secs => $3::float8 / 1000))
    and (a.pid is null or (
      a.datname = current_database() and a.usesysid is not null and a.application_name is distinct from $1
      and coalesce(a.backend_type, '') <> all (array['autovacuum worker', 'walsender', 'parallel worker'])
      and not exists (select from pg_catalog.pg_stat_progress_vacuum v where v.pid = open.pid)))
  order by a.xact_start nulls last, open.pid`;

/** The prepared transactions. Their `virtualxid` locks are gone. */
const preparedTransactionsQuery = `
  select transaction::text || '/' || gid as id,
    to_char(prepared at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as since,
    format('prepared transaction %L (role %s), prepared %s ago', gid, owner,
      date_trunc('second', clock_timestamp() - prepared)) as description
  from pg_catalog.pg_prepared_xacts where database = current_database() order by prepared`;

/** Waits in milliseconds, the relations that are read, and the application name that identifies exportd's own sessions. */
interface BarrierOptions {
  readonly relations: Relations;
  readonly settleMs: number;
  readonly pollMs: number;
  readonly ownApplicationName: string;
}

/** The result of a check whose barrier is open. */
export const openBarrier: BarrierCheck = { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };

/**
 * Checks the barrier once. It opens after these steps: the cutoff is `settleMs` in the past by the source's clock, and, where
 * subscriptions write the rows, by that of their publishers; every transaction that may write rows below it, of those open at that moment, has ended; every transaction that was
 * prepared at the moment after has ended. From then on no new row can appear below the cutoff. A comparison of snapshots
 * would miss a transaction that started before the cutoff and has not written yet.
 * Each check needs a new transaction, because PostgreSQL caches the activity statistics until the transaction ends.
 * @throws SourceIsStandby
 */
export async function checkBarrier(
  connection: Connection,
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  if (state.phase === 'open') return openBarrier;
  if (state.phase !== 'settling') return advance(state, createTransactionLists(connection, options), options);
  const { wait_ms } = await readServer(connection, { cutoff, settleMs: options.settleMs });
  if (wait_ms > 0) {
    // The first wait is never shorter than the settle time. Otherwise runs that jitter has spread would meet again
    // here.
    const minimumMs = state.checked ? 0 : options.settleMs;
    return {
      state: { phase: 'settling', checked: true },
      wait_ms: Math.max(wait_ms, minimumMs),
      blocked_by: [],
    };
  }
  const settled = { cutoff, settleMs: options.settleMs };
  const lists = createTransactionLists(connection, options, settled);
  const until = new Date(Date.parse(cutoff) + options.settleMs).toISOString();
  return advance({ phase: 'subscribed', until }, lists, options);
}

/**
 * Checks blocked barriers with one list of the open transactions, and one of the prepared ones. A state that cannot be
 * read, which a newer version may have stored, stays as it is.
 * @throws SourceIsStandby
 */
export async function checkBarriers(
  connection: Connection,
  states: readonly UnsettledBarrier[],
  options: BarrierOptions,
): Promise<readonly BarrierCheck[]> {
  const lists = createTransactionLists(connection, options);
  const checks: BarrierCheck[] = [];
  for (const state of states)
    try {
      checks.push(await advance(state, lists, options));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      checks.push({ state, wait_ms: options.pollMs, blocked_by: [] });
    }
  return checks;
}

/** Advances a barrier as far as the lists allow. A standby's replay is not checked here. */
async function advance(
  state: UnsettledBarrier,
  lists: TransactionLists,
  { pollMs }: BarrierOptions,
): Promise<BarrierCheck> {
  const blocked = (blockedState: UnsettledBarrier, blockers: readonly Described[]): BarrierCheck => ({
    state: blockedState,
    wait_ms: pollMs,
    blocked_by: blockers.map(({ description }) => description),
  });
  if (state.phase === 'subscribed') {
    const behind = (await lists.origins()).subscriptions.filter((one) => !hasApplied(one, state.until));
    if (behind.length > 0) return blocked(state, behind.map(describeSubscription));
  }
  if (state.phase === 'subscribed' || state.phase === 'transactions') {
    const open = await lists.open();
    const remaining = state.phase === 'subscribed' ? open.transactions : open.remainingOf(state);
    if (remaining.length > 0) {
      const { server_start } = open;
      const started_until = horizonOf(remaining);
      if (started_until !== null)
        return blocked({ phase: 'transactions', server_start, started_until }, remaining);
      const blockers = remaining.map(({ virtual_transaction, pid, backend_start }) => ({
        virtual_transaction,
        pid,
        backend_start,
      }));
      return blocked({ phase: 'transactions', server_start, blockers }, remaining);
    }
  }
  const prepared = await lists.prepared();
  const remaining =
    state.phase !== 'prepared'
      ? prepared
      : 'prepared_until' in state
        ? prepared.filter(({ since }) => isWithin(state.prepared_until, since))
        : prepared.filter(({ id }) => state.blockers.includes(id));
  if (remaining.length === 0) return openBarrier;
  const prepared_until = horizonOf(remaining);
  return blocked(
    prepared_until === null
      ? { phase: 'prepared', blockers: remaining.map(({ id }) => id) }
      : { phase: 'prepared', prepared_until },
    remaining,
  );
}

/** How many transactions a state lists. Each check of a run repeats it in the history, and the journal keeps it. */
const maxListed = 10;

/**
 * The time until which all transactions of a long list started; null for a short one, and where one is hidden, which needs
 * its id. Those that started until then are the list, and at most others that had no need to block: their number only falls.
 */
function horizonOf(transactions: readonly Dated[]): string | null {
  if (transactions.length <= maxListed) return null;
  const times = transactions.flatMap(({ since }) => since ?? []);
  return times.length === transactions.length ? (times.sort().at(-1) ?? null) : null;
}

/** Whether a transaction belongs to those until a horizon. One whose start is hidden by now may, so that nothing is missed. */
const isWithin = (until: string, since: string | null): boolean => since === null || since <= until;

/**
 * How long a publisher may take between reading its position and sending it with a time, in milliseconds. What was written
 * in between is not applied, although the time is later: on a busy machine a row was missed so.
 */
const publisherPauseMs = 1_000;

/** Whether a subscription has applied what its publisher had written by a time of the publisher's clock. */
const hasApplied = ({ is_ready, applied_until }: Subscription, until: string): boolean =>
  is_ready && applied_until !== null && Date.parse(applied_until) > Date.parse(until) + publisherPauseMs;

const describeSubscription = ({ name, is_ready, applied_until }: Subscription): Described => ({
  description: !is_ready
    ? `subscription ${name}, which is disabled or still copies its tables`
    : applied_until === null
      ? `subscription ${name}, which receives nothing`
      : `subscription ${name}, which has applied its publisher's changes up to ${applied_until}`,
});

/** The open transactions of a server at one moment. */
interface OpenTransactions {
  readonly server_start: string;
  readonly transactions: readonly (BlockingTransaction & Dated)[];
  /** The blockers of a barrier that have not ended. */
  remainingOf(
    state: Extract<UnsettledBarrier, { phase: 'transactions' }>,
  ): readonly (BlockingTransaction & Dated)[];
}

/** The lists that barriers compare themselves with. Each is read once, when it is first needed. */
interface TransactionLists {
  open(): Promise<OpenTransactions>;
  /** A transaction is prepared before its virtual id is released, so this list is read after the open ones. */
  prepared(): Promise<readonly PreparedTransaction[]>;
  /** Where the rows come from. */
  origins(): Promise<RowOrigins>;
}

function createTransactionLists(
  connection: Connection,
  { ownApplicationName, relations }: BarrierOptions,
  settled?: SettledCutoff,
): TransactionLists {
  let openList: Promise<OpenTransactions> | undefined;
  let preparedList: Promise<readonly PreparedTransaction[]> | undefined;
  let rowOrigins: Promise<RowOrigins> | undefined;
  const readOpen = async (): Promise<OpenTransactions> => {
    const { server_start } = await readServer(connection);
    const { rows: transactions } = await connection.query<BlockingTransaction & Dated>(
      openTransactionsQuery,
      [ownApplicationName, settled?.cutoff ?? null, settled?.settleMs ?? null],
    );
    const byId = new Map(transactions.map((transaction) => [idOf(transaction), transaction]));
    return {
      server_start,
      transactions,
      remainingOf: (state) => {
        if (state.server_start !== server_start) return [];
        if ('started_until' in state)
          return transactions.filter(({ since }) => isWithin(state.started_until, since));
        return state.blockers.flatMap((blocker) => {
          const found = byId.get(idOf(blocker));
          return found && mayBeSameSession(found, blocker) ? [found] : [];
        });
      },
    };
  };
  const open = () => (openList ??= readOpen());
  return {
    open,
    origins: () => (rowOrigins ??= readRowOrigins(connection, relations)),
    prepared: async () => {
      await open();
      return (preparedList ??= connection
        .query<PreparedTransaction>(preparedTransactionsQuery)
        .then(({ rows }) => rows));
    },
  };
}

const idOf = ({ virtual_transaction, pid }: BlockingTransaction): string => `${virtual_transaction}/${pid}`;

/** After a crash PostgreSQL starts its numbers anew without a new start time. A hidden start is assumed to be the same. */
const mayBeSameSession = (one: BlockingTransaction, other: BlockingTransaction): boolean =>
  one.backend_start === null || other.backend_start === null || one.backend_start === other.backend_start;

/**
 * Reads when the server started, and the milliseconds until a cutoff is `settleMs` in the past by its clock (0 when it is).
 * @throws SourceIsStandby
 */
async function readServer(
  connection: Connection,
  settled?: SettledCutoff,
): Promise<{ readonly server_start: string; readonly wait_ms: number }> {
  const { rows } = await connection.query<{ server_start: string; wait_ms: number; standby: boolean }>(
    `select to_char(pg_postmaster_start_time() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as server_start,
       greatest(0, ceil(1000 * extract(epoch from $1::timestamptz - clock_timestamp()) + $2::float8))::float8 as wait_ms,
       pg_is_in_recovery() as standby`,
    [settled?.cutoff ?? null, settled?.settleMs ?? null],
  );
  if (rows[0]?.standby) throw new SourceIsStandby();
  return { server_start: rows[0]?.server_start ?? '', wait_ms: rows[0]?.wait_ms ?? 0 };
}

/** The connections of a source that is a standby. */
interface StandbyServers {
  readonly primary: SourceConnections;
  readonly standby: SourceConnections;
}

/**
 * Checks the barrier of a source that is a standby. First the barrier has to open on the primary, where rows are
 * written. Then the standby has to replay everything that the primary had written by then.
 */
export async function checkStandbyBarrier(
  servers: StandbyServers,
  cutoff: string,
  state: BarrierState,
  options: BarrierOptions,
): Promise<BarrierCheck> {
  const check =
    state.phase === 'replaying'
      ? waitForReplay(state.position, options)
      : await servers.primary.read({}, undefined, ({ connection }) =>
          checkBarrier(connection, cutoff, state, options),
        );
  const [result = check] = await checkReplay(servers, [check], options);
  return result;
}

/** Checks blocked barriers of a source that is a standby, with the same few statements as one. */
export async function checkStandbyBarriers(
  servers: StandbyServers,
  states: readonly UnsettledBarrier[],
  options: BarrierOptions,
): Promise<readonly BarrierCheck[]> {
  const onPrimary = await servers.primary.read({}, undefined, ({ connection }) =>
    checkBarriers(connection, states, options),
  );
  const checks = onPrimary.map((check, index) => {
    const state = states[index];
    return state?.phase === 'replaying' ? waitForReplay(state.position, options) : check;
  });
  return checkReplay(servers, checks, options);
}

const waitForReplay = (position: string, { pollMs }: BarrierOptions): BarrierCheck => ({
  state: { phase: 'replaying', position },
  wait_ms: pollMs,
  blocked_by: [],
});

/** Opens the barriers whose position the standby has replayed. Those that are open on the primary get a position first. */
async function checkReplay(
  { primary, standby }: StandbyServers,
  checks: readonly BarrierCheck[],
  options: BarrierOptions,
): Promise<readonly BarrierCheck[]> {
  let current = checks;
  if (current.some(({ state }) => state.phase === 'open')) {
    // Read in a transaction that starts after the last check, so that the position includes everything committed by
    // then.
    const position = await primary.read({}, undefined, ({ connection }) => writtenPosition(connection));
    current = current.map((check) =>
      check.state.phase === 'open' ? waitForReplay(position, options) : check,
    );
  }
  const positions = current.flatMap(({ state }) => (state.phase === 'replaying' ? [state.position] : []));
  if (positions.length === 0) return current;
  const { at, reached } = await standby.read({}, undefined, ({ connection }) =>
    replayedPositions(connection, [...new Set(positions)]),
  );
  return current.map((check) => {
    if (check.state.phase !== 'replaying') return check;
    const { position } = check.state;
    if (reached.has(position)) return openBarrier;
    return {
      ...check,
      blocked_by: [`the standby, which has replayed the primary's log up to ${at}, not yet to ${position}`],
    };
  });
}

/**
 * The end of the last WAL record of the primary, including one that is not flushed yet. At a page boundary the server
 * reports the position after the page header, which a standby reaches only when a record follows.
 */
async function writtenPosition(connection: Connection): Promise<string> {
  const { rows } = await connection.query<{ position: string }>(
    `select (lsn - case
         when file_offset = 40 then 40
         when file_offset % current_setting('wal_block_size')::int = 24 then 24
         else 0 end)::text as position
     from pg_current_wal_insert_lsn() as lsn, pg_walfile_name_offset(lsn)`,
  );
  return rows[0]?.position ?? '';
}

/** The replay position of the standby, and which positions it has reached. After a failover it may be a primary. */
async function replayedPositions(
  connection: Connection,
  positions: readonly string[],
): Promise<{ readonly at: string; readonly reached: ReadonlySet<string> }> {
  const { rows } = await connection.query<{ at: string | null; reached: string[] }>(
    `select at::text, array(select position from unnest($1::text[]) as position where at >= position::pg_lsn) as reached
     from (select case when pg_is_in_recovery()
       then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end as at) as replayed`,
    [positions],
  );
  return { at: rows[0]?.at ?? 'nowhere', reached: new Set(rows[0]?.reached) };
}

/** A relation whose rows another server, or another statement, writes. */
interface UnderlyingRelation {
  readonly oid: number;
  /** The quoted name with its schema. */
  readonly name: string;
  readonly kind: 'r' | 'p' | 'v' | 'm' | 'f';
  /** Whether it is one that exportd names, of which policies hide rows from its role. */
  readonly hides_rows: boolean;
  /** Whether Citus is installed, whose tables any node may write. */
  readonly has_citus: boolean;
  readonly subscriptions: readonly Subscription[];
  /** What of a view's definition has other rows or values from one reading to the next; see `changesOfViewSql`. */
  readonly changes: readonly string[];
}

/** A subscription of logical replication that writes a relation. */
interface Subscription {
  readonly name: string;
  /** The first copy of the relation is done, and the subscription is enabled. */
  readonly is_ready: boolean;
  /** The publisher's time up to which changes were applied (ISO 8601); null while nothing is received. */
  readonly applied_until: string | null;
}

/** A relation in which rows appear that no transaction of the server shows. */
interface UnseenRows {
  readonly name: string;
  readonly kind: 'foreign table' | 'materialized view' | 'distributed table' | 'view';
  /** Of a view: what of its definition has other rows or values from one reading to the next. */
  readonly changes?: readonly string[];
}

/** Where the rows of relations come from, if not from transactions of their server. Names are quoted, with their schema. */
export interface RowOrigins {
  readonly unseen: readonly UnseenRows[];
  /** The subscriptions that write rows. */
  readonly subscriptions: readonly Subscription[];
  /** The named relations of which policies hide rows. */
  readonly hidden: readonly string[];
}

/**
 * SQL: what of a view's definition has other rows or values from one reading to the next, as JSON: the clock, chance, a limit, and
 * functions of users that may use them. The definition is the stored tree, since `pg_depend` has no functions of PostgreSQL
 * itself. Its stable functions depend on the settings of the session alone, those of the clock excepted. Of extensions only
 * volatile functions count, since many call functions stable that a dictionary configures.
 * @param view SQL of its oid
 */
const changesOfViewSql = (view: string): string => `(
  select coalesce(json_agg(distinct what order by what), '[]')
  from pg_catalog.pg_rewrite rule cross join lateral (
    select case when pronamespace = 'pg_catalog'::regnamespace then proname::text
        else format('%I.%I', pronamespace::regnamespace, proname) end || '()' as what
    from regexp_matches(ev_action::text, ':(?:funcid|opfuncid|winfnoid|aggfnoid) ([0-9]+)', 'g') as used (oid)
    join pg_catalog.pg_proc function on function.oid = used.oid[1]::oid
    where provolatile = 'v' or case when pronamespace = 'pg_catalog'::regnamespace
      then proname in ('now', 'transaction_timestamp', 'statement_timestamp') or proname = 'age' and pronargs = 1
      else provolatile = 's' and not exists (select from pg_catalog.pg_depend
        where classid = 'pg_proc'::regclass and objid = function.oid and deptype = 'e') end
    union all
    -- CURRENT_DATE, CURRENT_TIMESTAMP and the like; later numbers are names of roles.
    select 'current_timestamp' where ev_action::text ~ '[{]SQLVALUEFUNCTION :op [0-8] '
    union all
    select 'limit' where ev_action::text ~ ':limit(Count|Offset) [{]'
    union all
    select 'tablesample' where ev_action::text ~ ':tablesample [{]'
  ) as changing
  where rule.ev_class = ${view})`;

/**
 * The relations below others: what views select from, partitions and children. `pg_dist_partition` is a table of Citus,
 * which another statement reads where it exists.
 */
const underlyingQuery = `
  with recursive under as (
    select oid, relkind, true as is_named from pg_catalog.pg_class
    -- Without the right to use its schema, even the name of a relation is an error. Nothing may need that relation.
    where oid in (
      select to_regclass(relation) from unnest($1::text[], $2::text[]) as named (relation, schema)
      where schema is null
        or (select has_schema_privilege(oid, 'usage') from pg_catalog.pg_namespace where nspname = schema))
    union
    select below.oid, below.relkind, false from under
    cross join lateral (
      select inhrelid as oid from pg_catalog.pg_inherits where inhparent = under.oid
      union all
      select refobjid from pg_catalog.pg_rewrite rule
      join pg_catalog.pg_depend on classid = 'pg_rewrite'::regclass and objid = rule.oid
        and refclassid = 'pg_class'::regclass and refobjid <> under.oid
      where rule.ev_class = under.oid and under.relkind in ('v', 'm')
    ) as next join pg_catalog.pg_class below on below.oid = next.oid
  )
  select distinct on (name, under.oid) under.oid, format('%I.%I', nspname, relname) as name, under.relkind as kind,
    -- Only the policies of the named relation apply, and of tables below a view those for its owner, which PostgreSQL rejects.
    is_named and ${hidesRowsSql('under.oid')} as hides_rows,
    to_regclass('pg_dist_partition') is not null as has_citus,
    (select coalesce(json_agg(json_build_object('name', subname, 'is_ready', subenabled and srsubstate = 'r',
        'applied_until', (select to_char(max(latest_end_time) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
          from pg_catalog.pg_stat_subscription stat where stat.subid = subscription.oid and stat.relid is null))
        order by subname), '[]')
     from pg_catalog.pg_subscription_rel
     join pg_catalog.pg_subscription subscription on subscription.oid = srsubid
     where srrelid = under.oid) as subscriptions,
    case relation.relkind when 'v' then ${changesOfViewSql('under.oid')} else '[]' end as changes
  from under join pg_catalog.pg_class relation on relation.oid = under.oid
  join pg_catalog.pg_namespace namespace on namespace.oid = relnamespace
  order by name, under.oid, is_named desc`;

/** The schema of a quoted name; null if it has none. */
const schemaOf = (relation: string): string | null =>
  /^"((?:[^"]|"")+)"\."/.exec(relation)?.[1]?.replaceAll('""', '"') ?? null;

/** Reads where the rows of relations come from. Relations that do not exist are left out. */
export async function readRowOrigins(
  connection: Pick<ReadTransaction['connection'], 'query'>,
  { events, persons, person_distinct_ids }: Relations,
): Promise<RowOrigins> {
  const named = [events, persons, person_distinct_ids];
  const { rows: relations } = await connection.query<UnderlyingRelation>(underlyingQuery, [
    named,
    named.map(schemaOf),
  ]);
  const distributed = relations.some(({ has_citus }) => has_citus)
    ? (
        await connection.query<{ oid: number }>(
          'select logicalrelid::oid as oid from pg_dist_partition where logicalrelid::oid = any ($1::oid[])',
          [relations.map(({ oid }) => oid)],
        )
      ).rows.map(({ oid }) => oid)
    : [];
  const written = relations.flatMap((relation) => relation.subscriptions);
  return {
    unseen: relations.flatMap((relation) => unseenRows(relation, distributed)),
    subscriptions: written
      .filter(({ name }, index) => written.findIndex((one) => one.name === name) === index)
      // One that still copies a relation is not ready, whatever its others are.
      .map((one) => ({
        ...one,
        is_ready: written.every(({ name, is_ready }) => name !== one.name || is_ready),
      })),
    hidden: relations.flatMap(({ name, hides_rows }) => (hides_rows ? [name] : [])),
  };
}

function unseenRows(
  { oid, name, kind, changes }: UnderlyingRelation,
  distributed: readonly number[],
): readonly UnseenRows[] {
  if (changes.length > 0) return [{ name, kind: 'view', changes }];
  if (distributed.includes(oid)) return [{ name, kind: 'distributed table' }];
  if (kind === 'f') return [{ name, kind: 'foreign table' }];
  return kind === 'm' ? [{ name, kind: 'materialized view' }] : [];
}

/** Policies hide rows of the source from exportd's role. An export would lack them silently. */
class RowsHidden extends Error {
  override readonly name = 'RowsHidden';

  constructor(relations: readonly string[]) {
    super(
      `Policies of row security hide rows of ${relations.join(', ')} from exportd's role. Run "alter role … bypassrls" for the role of SOURCE_DATABASE_URL, or create a policy that shows it all rows.`,
    );
  }
}

/**
 * Completes the check of a barrier that is open for all transactions of the server: rows from elsewhere may still appear.
 * @throws RowsHidden
 */
export async function withUnseenRows(
  connection: Pick<ReadTransaction['connection'], 'query'>,
  relations: Relations,
  check: BarrierCheck,
): Promise<BarrierCheck> {
  if (check.state.phase !== 'open') return check;
  const { hidden, unseen } = await readRowOrigins(connection, relations);
  if (hidden.length > 0) throw new RowsHidden(hidden);
  return unseen.length > 0
    ? {
        ...check,
        unseen: unseen.map(({ name, kind, changes }) =>
          changes
            ? `${name} is a view that changes from one reading to the next (${changes.join(', ')})`
            : `${name} is a ${kind}`,
        ),
      }
    : check;
}
