import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { untilAborted } from '../concurrency/until_aborted.ts';
import { answerSettings, setStatements } from '../network/postgresql_session.ts';
import { isPooled, prepareStatements } from '../network/prepared_statements.ts';
import { traceStatements } from '../tracing/spans.ts';
import { hidesRowsSql } from './relations.ts';
import { openReusingSocket } from './copy_data.ts';

/** What monitoring reads of a pool. */
export type PoolCounts = Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount' | 'options'>;

/** What monitoring needs of a source. */
export interface SourceMonitor {
  /** Opens a transaction and commits it. Rejects when the source does not respond or rejects the login. */
  ping(signal?: AbortSignal): Promise<void>;
  /** The pools by what their connections do: read `pages`, `counts` or `checks` of the barrier. */
  readonly pools: Readonly<Record<'pages' | 'counts' | 'checks', PoolCounts>>;
}

/**
 * How many milliseconds longer than the server a client waits for a statement to end before it closes the connection.
 */
const responseGraceMs = 15_000;
/**
 * A connection is replaced after this time, even if it is never idle. After a failover it may lead to a standby that no
 * longer follows its primary, which no statement shows.
 */
const maxConnectionSeconds = 300;

/** No connection to the source was free for too long, because others have slow statements. A retry may find one. */
export class SourceBusy extends Error {
  override readonly name = 'SourceBusy';
}

const sourceErrors = new WeakSet<object>();

/** Whether reading the source threw an error: those of the control database have the same types. */
export const isErrorOfSource = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && sourceErrors.has(error);

/** What every connection of a pool has in common. */
interface PoolOptions {
  readonly sourceUrl: string;
  readonly applicationName: string;
  /** In milliseconds. */
  readonly statementTimeoutMs: number;
}

/** Opens a pool of connections, which connects on first use. */
function openPool(options: PoolOptions, size: { max: number; connectionTimeoutMillis: number }): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.sourceUrl,
    application_name: options.applicationName,
    stream: openReusingSocket,
    ...size,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: maxConnectionSeconds,
    // A peer that disappears is detected by TCP keepalive while idle, and by the query timeout during a statement.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    query_timeout: options.statementTimeoutMs + responseGraceMs,
  });
  // A broken connection fails the running statement, or is replaced while idle. Without a listener it would also end
  // the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  traceStatements(pool, 'source');
  return pool;
}

/** The pool's error when all of its connections stay in use. */
const isPoolExhausted = (error: unknown): boolean =>
  error instanceof Error && error.message === 'timeout exceeded when trying to connect';

/** Acquires a connection of the pool. An abort ends the wait. @throws SourceBusy */
async function acquire(pool: pg.Pool, signal: AbortSignal | undefined): Promise<pg.PoolClient> {
  signal?.throwIfAborted();
  const connecting = pool.connect().catch((error: unknown) => {
    throw isPoolExhausted(error)
      ? new SourceBusy(
          `All ${pool.options.max} connections to the source are busy (EXPORTD_SOURCE_CONNECTIONS). Waiting until one is free.`,
        )
      : error;
  });
  if (!signal) return connecting;
  try {
    return await untilAborted(connecting, signal);
  } catch (error) {
    connecting.then(
      (connection) => connection.release(),
      () => undefined,
    );
    throw error;
  }
}

/** Interval in milliseconds at which a cancellation is repeated while its statement runs. */
const cancelIntervalMs = 200;
/** How long an abort waits until its statement has ended, in milliseconds. Then its connection is closed. */
const abortGraceMs = 10_000;
/** How long a read waits for a connection of the pool, or for a new one to be established. */
const connectTimeoutMs = 10_000;
/** How long a statement waits for a lock, in milliseconds. A locked relation must not occupy the connections of others. */
const lockTimeoutMs = 2_000;
/**
 * How long a transaction may at least wait for its process, in milliseconds. A short timeout of statements must not end
 * the session of a process that got no core for a while.
 */
const minIdleTimeoutMs = 60_000;

/** Those that all exports of a deployment send. Each export with a filter has others. */
const maxPreparedStatements = 20;

/** The source is a standby, and only its primary knows the transactions that are open. */
export class SourceIsStandby extends Error {
  override readonly name = 'SourceIsStandby';

  constructor() {
    super(
      'The source is a standby, which cannot show the open transactions of its primary. Set SOURCE_PRIMARY_DATABASE_URL to the primary.',
    );
  }
}

/** Connection options of the source; timeouts in milliseconds. */
export interface SourceConnectionOptions extends PoolOptions {
  readonly maxConnections: number;
  /** Whether a standby may be read; by default it may. */
  readonly allowsStandby?: boolean;
  /** Set for a role that may call few functions. */
  readonly restrictedRole?: RestrictedRole;
  /** What its statements may use, as PostgreSQL writes sizes. */
  readonly resources?: StatementResources;
}

/** Bounds of a statement's memory and disk. */
export interface StatementResources {
  readonly work_mem: string;
  /** Has an effect only if the role may set it, or has it already: by default only a superuser may. */
  readonly temp_file_limit: string;
}

/** A transaction that no other one can be taken for: the process that runs it, and when it started. */
export interface TransactionIdentity {
  readonly pid: number;
  /** Microseconds since 1970, as PostgreSQL counts them. */
  readonly started: string;
}

/** What the first message of a transaction returns. */
interface BegunTransaction extends TransactionIdentity {
  readonly standby: boolean;
  /** Whether the database has policies, some of which may show all rows. */
  readonly has_policies: boolean;
}

/** What a role needs that may do little in PostgreSQL, and whose statements are not trusted with the session. */
export interface RestrictedRole {
  /** Settings that prove to PostgreSQL what the parameters of a transaction ask for. */
  authorize(
    parameters: Readonly<Record<string, string>>,
    transaction: TransactionIdentity,
  ): Readonly<Record<string, string>>;
  /** The statement that cancels the running statement of a process. */
  cancelStatement(pid: number): pg.QueryConfig;
}

/** A READ ONLY transaction, open while `work` runs. */
export interface ReadTransaction {
  readonly connection: pg.PoolClient;
  /** Sets more settings for this transaction only. */
  readonly set: (parameters: Readonly<Record<string, string>>) => Promise<void>;
  /** Cancels the running statement in PostgreSQL; it fails with `query_canceled`. */
  readonly cancel: () => void;
}

/** A pool of connections to the source. */
export interface SourceConnections {
  /** The timeout of a statement that sets no other. */
  readonly statementTimeoutMs: number;
  readonly pool: PoolCounts;
  /**
   * Runs `work` in a READ ONLY transaction. Session settings and `parameters` are set for this transaction only, so
   * that nothing depends on the state of the connection or of a connection pooler.
   * @throws SourceBusy, SourceIsStandby, and the signal's reason when it is aborted; the running statement is then
   * cancelled in PostgreSQL
   */
  read<Result>(
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
    work: (transaction: ReadTransaction) => Promise<Result>,
  ): Promise<Result>;
  close(): Promise<void>;
}

/**
 * Opens the pool of the source, which connects on first use, and a separate connection for cancellations, which works
 * when the pool is exhausted.
 */
export function connectToSource(options: SourceConnectionOptions): SourceConnections {
  const readPool = openPool(options, {
    max: options.maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
  });
  /** Connections that no pooler shares, so that they keep what they prepare. */
  const direct = new WeakSet<pg.PoolClient>();
  // The session of a restricted role is discarded after each transaction.
  if (!options.restrictedRole)
    prepareStatements(readPool, { max: maxPreparedStatements, keepsThem: (client) => direct.has(client) });
  /** Whether the server was a standby in the first transaction of a connection. */
  const wasStandby = new WeakMap<pg.PoolClient, boolean>();
  const cancelPool = openPool(options, { max: 1, connectionTimeoutMillis: 5_000 });
  // The isolation of this transaction, which has begun, is in BEGIN.
  const { default_transaction_isolation, ...valueSettings } = answerSettings;
  const sessionSettings = {
    ...valueSettings,
    jit: 'off',
    lock_timeout: String(lockTimeoutMs),
    statement_timeout: String(options.statementTimeoutMs),
    idle_in_transaction_session_timeout: String(Math.max(options.statementTimeoutMs, minIdleTimeoutMs)),
    ...(options.resources && { work_mem: options.resources.work_mem }),
  };

  const { restrictedRole, resources } = options;
  const setSession = restrictedRole
    ? `${setStatements(sessionSettings, 'local')}; `
    : // A policy is then an error and not a missing row. Policies restrict the role of queries on purpose.
      setInOneStatement({ ...sessionSettings, row_security: 'off' });
  const findPolicies = restrictedRole ? 'false' : 'exists (select from pg_catalog.pg_policy)';
  // A restricted role has its own limit, which `exportd query setup` sets.
  const limitTemporaryFiles =
    resources && !restrictedRole ? `${limitTemporaryFilesStatement(resources.temp_file_limit)}; ` : '';
  // One message for all: a run has several transactions, and round trips dominate the cost of a short one.
  const beginStatement = (first: string): string =>
    `begin transaction isolation level ${default_transaction_isolation}, read only; ${setSession}${limitTemporaryFiles}${first}select pg_backend_pid() as pid, pg_is_in_recovery() as standby, (extract(epoch from transaction_timestamp()) * 1000000)::bigint::text as started, ${findPolicies} as has_policies`;

  async function beginTransaction(
    connection: pg.PoolClient,
    first: string,
  ): Promise<TransactionIdentity & { readonly standby: boolean }> {
    // Several statements return several results, which the types of the driver do not express.
    const results: unknown = await connection.query(beginStatement(first));
    const { rows } = (results as pg.QueryResult<BegunTransaction>[]).at(-1) ?? {};
    const [begun] = rows ?? [];
    if (!begun) throw new Error('The source did not identify the transaction.');
    const { has_policies, ...transaction } = begun;
    if (transaction.standby && options.allowsStandby === false) throw new SourceIsStandby();
    if (has_policies) await connection.query(allowHarmlessPolicies);
    return transaction;
  }

  /**
   * Acquires a connection and starts a transaction. If the server has become a standby or a primary since the connection
   * was opened, the connection is closed and the next one is tried: after a failover the address leads to another server.
   * @param first statements that follow BEGIN in the same message
   */
  async function openTransaction(signal: AbortSignal | undefined, first: string) {
    for (;;) {
      const connection = await acquire(readPool, signal);
      try {
        const { standby, ...transaction } = await beginTransaction(connection, first);
        if (!isPooled(connection, transaction.pid)) direct.add(connection);
        const isSameServer = (wasStandby.get(connection) ?? standby) === standby;
        wasStandby.set(connection, standby);
        if (isSameServer) return { connection, transaction };
      } catch (error) {
        connection.release(asError(error));
        throw signal?.aborted ? signal.reason : error;
      }
      connection.release(true);
    }
  }

  /** Whatever the statements of a restricted role left in the session must not reach those of the next project. */
  const forgetSession = async (connection: pg.PoolClient): Promise<void> => {
    if (restrictedRole) await connection.query('discard all');
  };

  const setIn =
    (connection: pg.PoolClient): ReadTransaction['set'] =>
    async (parameters) => {
      if (Object.keys(parameters).length === 0) return;
      if (restrictedRole) {
        await connection.query(setStatements(parameters, 'local'));
        return;
      }
      // One row for each: a select list has at most 1,664 columns, and a query can have more literals.
      await connection.query(
        'select set_config(name, value, true) from unnest($1::text[], $2::text[]) as setting (name, value)',
        [Object.keys(parameters), Object.values(parameters)],
      );
    };

  return {
    statementTimeoutMs: options.statementTimeoutMs,
    pool: readPool,
    async read(parameters, signal, work) {
      const first = restrictedRole ? undefined : settingsInMessage(parameters);
      const { connection, transaction } = await openTransaction(signal, first ?? '').catch(
        (error: unknown) => {
          if (!signal?.aborted && typeof error === 'object' && error !== null) sourceErrors.add(error);
          throw error;
        },
      );
      const cannotCancel = Promise.withResolvers<never>();
      cannotCancel.promise.catch(() => undefined);
      const ended = Promise.withResolvers<undefined>();
      let running = false;
      let cancellation = Promise.resolve();
      // Repeated because a server ignores a request that arrives before the statement.
      const cancelWhileRunning = async () => {
        const startedAt = performance.now();
        while (running) {
          if (signal?.aborted && performance.now() - startedAt > abortGraceMs)
            throw new Error('The source did not end the statement that was cancelled.');
          await cancelPool.query(
            restrictedRole?.cancelStatement(transaction.pid) ?? {
              text: 'select pg_cancel_backend($1)',
              values: [transaction.pid],
            },
          );
          await Promise.race([ended.promise, delay(cancelIntervalMs, undefined, { ref: false })]);
        }
      };
      const cancel = () => {
        cancellation = cancellation.then(cancelWhileRunning).catch(cannotCancel.reject);
      };
      let broken: Error | undefined;
      try {
        const set = setIn(connection);
        if (first === undefined)
          await set({ ...parameters, ...restrictedRole?.authorize(parameters, transaction) });
        signal?.throwIfAborted();
        signal?.addEventListener('abort', cancel);
        running = true;
        const done = work({ connection, set, cancel }).finally(() => {
          running = false;
          ended.resolve(undefined);
        });
        const result = await Promise.race([done, cannotCancel.promise]);
        // A pending request must not cancel a later statement.
        await cancellation;
        await connection.query('commit');
        await forgetSession(connection);
        return result;
      } catch (error) {
        await cancellation;
        // A connection is reused only after an error that PostgreSQL reported.
        if (error instanceof pg.DatabaseError)
          await connection
            .query('rollback')
            .then(() => forgetSession(connection))
            .catch((failure: unknown) => (broken = asError(failure)));
        else broken = asError(error);
        if (!signal?.aborted && typeof error === 'object' && error !== null) sourceErrors.add(error);
        throw signal?.aborted ? signal.reason : error;
      } finally {
        signal?.removeEventListener('abort', cancel);
        connection.release(broken);
      }
    },
    async close() {
      await Promise.all([readPool.end(), cancelPool.end()]);
    },
  };
}

/**
 * A statement that sets parameters of the transaction, in a message with others; empty without parameters. Undefined if only a
 * message of its own can have them.
 */
function settingsInMessage(parameters: Readonly<Record<string, string>>): string | undefined {
  const settings = Object.entries(parameters);
  if (settings.length === 0) return '';
  // Such a byte would end the message. As a parameter it is an error of the value.
  if (settings.some(([, value]) => value.includes('\0'))) return undefined;
  return setInOneStatement(parameters);
}

/**
 * Sets parameters of the transaction: twenty statements would take PostgreSQL as long as a short query. Those that have their value
 * are left, since some, such as `timezone_abbreviations`, are read from a file. Ends with a semicolon.
 */
function setInOneStatement(parameters: Readonly<Record<string, string>>): string {
  const rows = Object.entries(parameters).map((setting) => `(${setting.map(pg.escapeLiteral).join(', ')})`);
  return `select count(set_config(name, value, true)) from (values ${rows.join(', ')}) as setting (name, value) where current_setting(name, true) is distinct from value; `;
}

/** Sets the limit if the role may. */
const limitTemporaryFilesStatement = (limit: string): string =>
  `select set_config('temp_file_limit', ${pg.escapeLiteral(limit)}, true) where has_parameter_privilege('temp_file_limit', 'set')`;

/**
 * PostgreSQL rejects statements whose rows policies would filter, if `row_security` is off. It does not distinguish policies
 * that show all rows, which `exportd query setup` creates for other roles: where they apply, the barrier looks for others.
 */
const allowHarmlessPolicies = `select set_config('row_security', case when exists (
  select from (select distinct polrelid from pg_catalog.pg_policy) policy
  where row_security_active(polrelid) and not ${hidesRowsSql('polrelid')}) then 'on' else 'off' end, true)`;

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/**
 * Counts the reads of threads, whose connections no pool of this thread has.
 * @returns `pool`: the counts of a pool with those reads
 */
export function countThreadReads(pool: PoolCounts): {
  readonly pool: PoolCounts;
  count<Result>(work: () => Promise<Result>): Promise<Result>;
} {
  let reads = 0;
  return {
    pool: {
      get totalCount() {
        return pool.totalCount + reads;
      },
      get idleCount() {
        return pool.idleCount;
      },
      get waitingCount() {
        return pool.waitingCount;
      },
      get options() {
        return pool.options;
      },
    },
    async count(work) {
      reads += 1;
      try {
        return await work();
      } finally {
        reads -= 1;
      }
    },
  };
}
