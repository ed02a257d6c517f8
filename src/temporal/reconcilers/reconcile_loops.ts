import type { Connection, Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { withRequestCount } from '../connections.ts';
import type { Reconciler, ReconcilerDependencies } from './check_executions.ts';
import {
  createPass,
  createStatisticsCollector,
  type PassMemory,
  type PassResult,
  type ReconcilerStatistics,
} from './pass.ts';

/** A lock that one process at a time holds. */
interface AdvisoryLock {
  /** Acquires the lock if it is free; returns whether this process holds it. */
  tryAcquire(): Promise<boolean>;
  release(): void;
}

/** A session-level advisory lock of PostgreSQL. It ends with its session, so a killed process releases it at once. */
export function createAdvisoryLock(pool: Pool, key: number): AdvisoryLock {
  let held: Connection | undefined;
  const release = (): void => {
    held?.release(true);
    held = undefined;
  };
  return {
    tryAcquire: async () => {
      if (held) {
        try {
          await held.query('select 1');
          return true;
        } catch {
          release();
        }
      }
      const connection = await pool.connect();
      // An unhandled error of an idle connection would end the process.
      connection.on('error', () => undefined);
      try {
        const { rows } = await connection.query<{ acquired: boolean }>(
          'select pg_try_advisory_lock($1) as acquired',
          [key],
        );
        if (rows[0]?.acquired === true) held = connection;
      } finally {
        if (held !== connection) connection.release(true);
      }
      return held !== undefined;
    },
    release,
  };
}

/** Repeats the passes of every reconciler, each in a loop of its own. */
export interface ReconcileLoops {
  /** Starts the first pass of each at once. */
  start(): void;
  /** Ends the passes that are running and waits for them. */
  stop(): Promise<void>;
  /**
   * Runs one pass of every reconciler, one after another. For tests and measurements.
   * @throws the first error of a pass, after all passes
   */
  runOnce(): Promise<void>;
  /** What each reconciler has done. */
  statistics(): readonly ReconcilerStatistics[];
}

/** Key of the reconcilers' advisory lock in the control database. */
const reconcilerLock = 5_140_517;

/** The time budget of a pass. The next pass continues one that has used it up. */
const maxPassMs = 30_000;
/** The pause after a pass that has used up its time. */
const outOfTimePauseMs = 1_000;
/** The pause after a pass in which anything failed, doubled with each further one, up to the reconcile interval. */
const failedPauseMs = 5_000;

interface Loop {
  /** Runs a pass and returns how it ended, and its error. */
  runPass(): Promise<{ readonly result: PassResult; readonly error: unknown }>;
  start(): void;
  /** Prevents further passes. */
  stop(): Promise<void>;
  statistics(): ReconcilerStatistics;
}

/**
 * Every worker process has the loops; an advisory lock lets one process at a time work. They do not run in Temporal, since
 * they repair what was lost with Temporal. A reconciler that fails, or takes long, delays no other.
 */
export function createReconcileLoops(
  dependencies: ReconcilerDependencies,
  reconcilers: Readonly<Record<string, Reconciler>>,
): ReconcileLoops {
  const lock = createAdvisoryLock(dependencies.journal.pool, reconcilerLock);
  const stopping = new AbortController();
  let acquiring: Promise<boolean> | undefined;
  let refusedUntil = 0;
  /**
   * The loops share the lock's session, so they must not acquire it at the same time. An attempt costs a connection, so
   * while another process holds the lock, they share its result too.
   */
  const tryAcquire = async (): Promise<boolean> => {
    if (performance.now() < refusedUntil) return false;
    acquiring ??= lock.tryAcquire().finally(() => {
      acquiring = undefined;
    });
    const isHeld = await acquiring;
    if (!isHeld) refusedUntil = performance.now() + dependencies.settings.EXPORTD_RECONCILE_INTERVAL / 2;
    return isHeld;
  };
  const loops = Object.entries(reconcilers).map(([name, reconciler]) =>
    createLoop(name, reconciler, { dependencies, tryAcquire, signal: stopping.signal }),
  );
  return {
    start: () => {
      for (const loop of loops) loop.start();
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(loops.map((loop) => loop.stop()));
      lock.release();
    },
    runOnce: async () => {
      const errors: unknown[] = [];
      for (const loop of loops) {
        const { error } = await loop.runPass();
        if (error !== undefined) errors.push(error);
      }
      if (errors.length > 0) throw errors[0];
    },
    statistics: () => loops.map((loop) => loop.statistics()),
  };
}

function createLoop(
  name: string,
  reconciler: Reconciler,
  {
    dependencies,
    tryAcquire,
    signal,
  }: {
    readonly dependencies: ReconcilerDependencies;
    readonly tryAcquire: () => Promise<boolean>;
    readonly signal: AbortSignal;
  },
): Loop {
  const { logger, settings } = dependencies;
  const collector = createStatisticsCollector(name);
  const memory: PassMemory = {};
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let failedInARow = 0;

  const runPass: Loop['runPass'] = async () => {
    const startedAt = performance.now();
    const pass = createPass({ name, memory, endsAt: startedAt + maxPassMs, signal, logger });
    const started_at = new Date().toISOString();
    let error: unknown;
    try {
      await withRequestCount(pass.counts, () => reconciler(dependencies, pass));
    } catch (thrown) {
      error = thrown;
    }
    const outcome = error !== undefined ? 'failed' : pass.counts.deferred > 0 ? 'out_of_time' : 'completed';
    const seconds = (performance.now() - startedAt) / 1_000;
    const result: PassResult = { ...pass.counts, started_at, seconds, outcome };
    collector.add(result);
    logPass(logger, name, result, error);
    return { result, error };
  };
  const pauseAfter = ({ outcome, failed }: PassResult): number => {
    const interval = settings.EXPORTD_RECONCILE_INTERVAL;
    const hasFailed = outcome === 'failed' || failed > 0;
    failedInARow = hasFailed ? failedInARow + 1 : 0;
    if (outcome === 'out_of_time') return Math.min(interval, outOfTimePauseMs);
    return hasFailed ? Math.min(interval, failedPauseMs * 2 ** Math.min(failedInARow - 1, 10)) : interval;
  };
  const runNext = async (): Promise<void> => {
    let pauseMs = settings.EXPORTD_RECONCILE_INTERVAL;
    try {
      if (await tryAcquire()) pauseMs = pauseAfter((await runPass()).result);
    } catch (error) {
      logger.warn(
        { err: error, reconciler: name },
        'The lock of the reconcilers could not be acquired. Trying again.',
      );
    }
    if (!signal.aborted) timer = setTimeout(start, pauseMs);
  };
  const start = (): void => {
    running = runNext();
  };
  return {
    runPass,
    start,
    stop: async () => {
      clearTimeout(timer);
      await running;
    },
    statistics: () => collector.read(),
  };
}

function logPass(logger: Logger, reconciler: string, result: PassResult, error: unknown): void {
  const { outcome, failed, repaired } = result;
  const fields = { reconciler, pass: result };
  if (outcome === 'failed')
    logger.warn({ ...fields, err: error }, 'A reconciler could not finish its pass. Trying again.');
  else if (failed > 0) logger.warn(fields, 'A reconciler could not repair every item.');
  else if (repaired > 0) logger.info(fields, 'A reconciler has repaired items.');
  else logger.debug(fields, 'A reconciler has finished its pass.');
}
