import { setTimeout as wait } from 'node:timers/promises';
import type { Settings } from '../config/settings.ts';
import { type CircuitBreaker, DestinationError, type Probe } from '../destination/destination.ts';
import {
  bucketName,
  circuitRetryDelayMs,
  describeOpenCircuit,
  destinationUnavailable,
  type OpenCircuit,
} from '../domain/circuit.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { failureOf, operatorFaultOf, toApplicationFailure } from './classify_error.ts';
import { causeOf, type OperatorFault, storeFault, storeResumption } from './operator_faults.ts';

/** The circuit breaker of all destinations. Its state is in the control database, so that workers share it. */
interface Circuits extends CircuitBreaker {
  /**
   * The error of a run whose destination this process knows to be unavailable until its next probe, without a statement.
   * Undefined when nothing is known: then `admit` decides.
   */
  waitOf(runId: string): DestinationError | undefined;
}

/** How long an attempt waits for the probe of another one, counted from the start of the probe. */
const probeWaitMs = 200;
/** How long the attempt waits that starts the probe of a destination which is not known to be unavailable. */
const ownProbeWaitMs = 1_000;
const pollMs = 50;
/** When an attempt returns that did not wait for the end of a probe. */
const returnAfterMs = 1_000;
/** Each has a connection. Beyond that, attempts return later. */
const maxProbes = 100;
/** Responses are recorded at most this often, so that a busy destination costs no statement per request. */
const recordIntervalMs = 5_000;
/** How long a circuit that was read counts as closed, in milliseconds, so that a busy one costs no statement per attempt. */
const closedMs = 5_000;
const maxRememberedRuns = 10_000;

/** A map that forgets its oldest entry, to bound the memory of a process. An entry that is set again is the newest. */
class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    const [oldest] = this.keys();
    if (oldest !== undefined && this.size > this.#max) this.delete(oldest);
    return this;
  }
}

export function createCircuitBreaker(
  store: CircuitStore,
  { EXPORTD_S3_PROBE_AFTER: probeAfterMs }: Pick<Settings, 'EXPORTD_S3_PROBE_AFTER'>,
): Circuits {
  /** The probes of this process. They need no slot of an activity, and outlast the attempts that started them. */
  const probes = new Map<string, Promise<void>>();
  const recorded = new Map<string, number>();
  /** Until when circuits that were read admit attempts, without those whose destination has failed since. */
  const knownClosed = new BoundedMap<string, number>(maxRememberedRuns);
  const isKnownClosed = (destination: string): boolean =>
    performance.now() < (knownClosed.get(destination) ?? -Infinity);
  /** Open circuits as they were read, and when. None closes before its next probe is due. */
  const knownOpen = new Map<string, { readonly circuit: StoredCircuit; readonly readAt: number }>();
  /** The destinations that runs wait for. A run that is forgotten asks the control database. */
  const waitingRuns = new BoundedMap<string, string>(maxRememberedRuns);

  const admits = ({ open, responded_ms_ago }: StoredCircuit): boolean =>
    open === null && responded_ms_ago !== null && responded_ms_ago < probeAfterMs;

  const read = async (destination: string): Promise<StoredCircuit> => {
    // Before the read, however long it takes: what is known of a circuit ends no later than its next probe is due.
    const readAt = performance.now();
    const circuit = await store.read(destination);
    if (circuit.open) knownOpen.set(destination, { circuit, readAt });
    else knownOpen.delete(destination);
    if (admits(circuit)) {
      const silentInMs = probeAfterMs - (circuit.responded_ms_ago ?? 0);
      knownClosed.set(destination, readAt + Math.min(closedMs, silentInMs));
    } else knownClosed.delete(destination);
    return circuit;
  };

  /** The open circuit of a destination, as of now; undefined when a probe may have closed it. */
  const waitingCircuit = (destination: string): StoredCircuit | undefined => {
    const known = knownOpen.get(destination);
    if (!known) return undefined;
    const elapsed = performance.now() - known.readAt;
    const { circuit } = known;
    if (circuit.next_probe_in_ms <= elapsed) return undefined;
    return {
      ...circuit,
      next_probe_in_ms: circuit.next_probe_in_ms - elapsed,
      open_for_ms: circuit.open_for_ms + elapsed,
    };
  };

  const runProbe = async (destination: string, probe: Probe): Promise<void> => {
    try {
      await probe();
      await store.close(destination);
      knownOpen.delete(destination);
    } catch (error) {
      if (!(error instanceof DestinationError)) return;
      await store
        .open(destination, error.message)
        .then(() => read(destination))
        .catch(() => undefined);
    } finally {
      probes.delete(destination);
    }
  };

  /** Starts a probe, unless another worker has the lease. */
  const startProbe = async (destination: string, probe: Probe): Promise<boolean> => {
    if (probes.has(destination) || probes.size >= maxProbes) return false;
    if (!(await store.leaseProbe(destination)) || probes.has(destination)) return false;
    probes.set(destination, runProbe(destination, probe));
    return true;
  };

  /** Waits until a probe has ended, at most for this time. */
  const waitForProbe = async (destination: string, limitMs: number, signal: AbortSignal): Promise<void> => {
    const local = probes.get(destination);
    if (local) {
      const timeout = new AbortController();
      const either = AbortSignal.any([signal, timeout.signal]);
      await Promise.race([local, wait(limitMs, undefined, { signal: either }).catch(() => undefined)]);
      timeout.abort();
    } else {
      const deadline = performance.now() + limitMs;
      while (performance.now() < deadline && (await store.read(destination)).probing_for_ms !== null)
        await wait(pollMs, undefined, { signal }).catch(() => undefined);
    }
    signal.throwIfAborted();
  };

  const unavailable = ({ open, open_for_ms, next_probe_in_ms }: StoredCircuit): DestinationError =>
    new DestinationError(
      destinationUnavailable,
      open ? describeOpenCircuit(open) : 'Waiting for the first response of the S3 server.',
      {
        transient: true,
        retry_delay_ms: open
          ? circuitRetryDelayMs({ nextProbeInMs: next_probe_in_ms, openForMs: open_for_ms }, Math.random())
          : returnAfterMs,
      },
    );

  return {
    admit: async (destination, probe, { yieldSlot, signal, runId }) => {
      // Another process may have opened it since. Then this one finds out by its own requests, or with the next read.
      if (isKnownClosed(destination)) return;
      const circuit = waitingCircuit(destination) ?? (await read(destination));
      if (admits(circuit)) return;
      const isDue = circuit.open === null || circuit.next_probe_in_ms <= 0;
      const isOwn = isDue && (await startProbe(destination, probe));
      const limitMs =
        isOwn && circuit.open === null ? ownProbeWaitMs : probeWaitMs - (circuit.probing_for_ms ?? 0);
      const reclaim = isDue && limitMs > 0 ? yieldSlot?.() : undefined;
      if (isDue && limitMs > 0 && (reclaim || !yieldSlot))
        await waitForProbe(destination, limitMs, signal).finally(() => reclaim?.());
      const latest = isDue ? await read(destination) : circuit;
      if (admits(latest)) return;
      if (runId !== undefined) waitingRuns.set(runId, destination);
      throw unavailable(latest);
    },
    reporter: (destination) => ({
      responded: () => {
        const now = performance.now();
        if (now - (recorded.get(destination) ?? -Infinity) < recordIntervalMs) return;
        recorded.set(destination, now);
        store.recordResponse(destination).catch(() => recorded.delete(destination));
      },
      unavailable: async (error) => {
        knownClosed.delete(destination);
        try {
          await store.open(destination, error.message);
          const circuit = await read(destination);
          return circuit.open ? unavailable(circuit) : error;
        } catch {
          return error;
        }
      },
      isOpen: () => waitingCircuit(destination) !== undefined,
    }),
    waitOf: (runId) => {
      const destination = waitingRuns.get(runId);
      const circuit = destination === undefined ? undefined : waitingCircuit(destination);
      return circuit && unavailable(circuit);
    },
  };
}

/** The circuit of a destination as all workers share it. Times are relative, because only the database's clock counts. */
interface StoredCircuit {
  /** Null while the circuit is closed. */
  readonly open: OpenCircuit | null;
  readonly open_for_ms: number;
  /** Until the next probe of an open circuit is due. */
  readonly next_probe_in_ms: number;
  /** Since the latest response; null if the destination has never responded. */
  readonly responded_ms_ago: number | null;
  /** For how long a worker has been probing the destination; null if none is. */
  readonly probing_for_ms: number | null;
}

/** The circuit of a destination that no worker has sent a request to. */
const unknownCircuit: StoredCircuit = {
  open: null,
  open_for_ms: 0,
  next_probe_in_ms: 0,
  responded_ms_ago: null,
  probing_for_ms: null,
};

type ProbeSettings = Pick<
  Settings,
  'EXPORTD_S3_PROBE_AFTER' | 'EXPORTD_S3_PROBE_INITIAL' | 'EXPORTD_S3_PROBE_MAX' | 'EXPORTD_S3_PROBE_TIMEOUT'
>;

/** A lease outlasts its probe by this time, in milliseconds. */
const leaseMarginMs = 1_000;
/** A circuit that opens again within this time after it closed continues with longer delays: it is the same incident. */
const relapseSeconds = 60;

/** SQL: milliseconds from one time to another. */
const msBetween = (from: string, to: string): string =>
  `(extract(epoch from ${to} - ${from}) * 1000)::float8`;

/**
 * SQL condition: the next probe of an open circuit is due. One that is further away than its delay was planned before the clock
 * was set back.
 */
const isProbeDue = (now: string, row = ''): string =>
  `not (${row}next_probe_at > ${now} and ${row}next_probe_at <= ${now} + ${row}probe_delay_ms * interval '1 millisecond')`;
/** SQL condition: a worker has the lease of a probe, which did not begin after now. */
const isLeased = (now: string, row = ''): string =>
  `(${row}leased_until > ${now} and ${row}probe_started_at <= ${now})`;

/** The circuits in the control database. */
export type CircuitStore = ReturnType<typeof createCircuitStore>;

/** @param logger of an outage it has one line when it begins, and one when it ends */
export function createCircuitStore(pool: Pool, settings: ProbeSettings, logger: Logger) {
  /** The bucket of a circuit, and how many exports write to it now, for the log. */
  const describe = async (destination: string, incident_id: string): Promise<object> => {
    const query = pool.query<{ config: Readonly<Record<string, unknown>> | null; exports: number }>(
      `select (array_agg(config.config))[1] as config, count(distinct export.id)::int as exports
       from exportd.destination_configs config
       join exportd.batch_exports export on export.id = config.batch_export_id and not export.deleted
       where config.circuit = $1 and config.version = export.config_version`,
      [destination],
    );
    // The line is logged without them rather than not at all.
    const { rows } = await query.catch(() => ({ rows: [] }));
    const [found] = rows;
    return { incident_id, bucket: found?.config ? bucketName(found.config) : null, exports: found?.exports };
  };
  return {
    read: async (destination: string): Promise<StoredCircuit> => {
      const { rows } = await pool.query<
        Omit<StoredCircuit, 'open'> & { [Column in keyof OpenCircuit]: OpenCircuit[Column] | null }
      >(
        `select error, opened_at, next_probe_at, coalesce(${msBetween('opened_at', 'now')}, 0) as open_for_ms,
           case when ${isProbeDue('now')} then 0 else coalesce(${msBetween('now', 'next_probe_at')}, 0) end as next_probe_in_ms,
           ${msBetween('responded_at', 'now')} as responded_ms_ago,
           case when ${isLeased('now')} then ${msBetween('probe_started_at', 'now')} end as probing_for_ms
         from exportd.destination_circuits cross join clock_timestamp() as now where destination = $1`,
        [destination],
      );
      const [row] = rows;
      if (!row) return unknownCircuit;
      const { error, opened_at, next_probe_at, ...times } = row;
      const isOpen = error !== null && opened_at !== null && next_probe_at !== null;
      return { ...times, open: isOpen ? { error, opened_at, next_probe_at } : null };
    },
    /**
     * Takes the lease that allows one probe of a destination: of an open circuit when it is due, of a closed one unless the
     * destination has responded within EXPORTD_S3_PROBE_AFTER. A lost worker's lease expires.
     * @returns whether this worker may probe
     */
    leaseProbe: async (destination: string): Promise<boolean> => {
      const { rowCount } = await pool.query(
        `insert into exportd.destination_circuits as circuit (destination, probe_started_at, leased_until)
         select $1, now, now + $2 * interval '1 millisecond' from clock_timestamp() as now
         on conflict (destination) do update set
           probe_started_at = excluded.probe_started_at, leased_until = excluded.leased_until
         where not coalesce(${isLeased('excluded.probe_started_at', 'circuit.')}, false)
           and case when circuit.opened_at is not null then ${isProbeDue('excluded.probe_started_at', 'circuit.')}
             else coalesce(circuit.responded_at < excluded.probe_started_at - $3 * interval '1 millisecond', true) end`,
        [destination, settings.EXPORTD_S3_PROBE_TIMEOUT + leaseMarginMs, settings.EXPORTD_S3_PROBE_AFTER],
      );
      return rowCount === 1;
    },
    /** Records a response. It closes no open circuit: only a probe does. */
    recordResponse: async (destination: string): Promise<void> => {
      await pool.query(
        `insert into exportd.destination_circuits as circuit (destination, responded_at)
         values ($1, clock_timestamp())
         on conflict (destination) do update set responded_at = excluded.responded_at
         where circuit.opened_at is null`,
        [destination],
      );
    },
    /** Closes the circuit and releases the lease after the destination has responded to a probe. */
    close: async (destination: string): Promise<void> => {
      const { rows } = await pool.query<{ incident_id: string }>(
        `with former as (
           select opened_at from exportd.destination_circuits where destination = $1
         ), closed as (
           insert into exportd.destination_circuits as circuit (destination, responded_at)
           values ($1, clock_timestamp())
           on conflict (destination) do update set
             responded_at = excluded.responded_at,
             closed_at = case when circuit.opened_at is null then circuit.closed_at else excluded.responded_at end,
             opened_at = null, error = null, next_probe_at = null, leased_until = null
           returning incident_id
         )
         select incident_id from closed, former where former.opened_at is not null`,
        [destination],
      );
      const [ended] = rows;
      if (ended) logger.info(await describe(destination, ended.incident_id), 'The bucket responds again.');
    },
    /** Opens the circuit, or delays the next probe of an open one when that was due. */
    open: async (destination: string, error: string): Promise<void> => {
      const { rows } = await pool.query<{ incident_id: string; is_new: boolean }>(
        `insert into exportd.destination_circuits as circuit
           (destination, error, opened_at, probe_delay_ms, next_probe_at)
         select $1, $2, now, $3::float8, now + $3::float8 * interval '1 millisecond' from clock_timestamp() as now
         on conflict (destination) do update set
           (error, opened_at, leased_until, incident_id, probe_delay_ms, next_probe_at) = (
             select excluded.error, coalesce(circuit.opened_at, excluded.opened_at), null::timestamptz,
               case when is_another then excluded.incident_id else circuit.incident_id end, delay,
               excluded.opened_at + delay * interval '1 millisecond'
             from (select circuit.opened_at is null
               and coalesce(circuit.closed_at < excluded.opened_at - $5 * interval '1 second', true) as is_another) outage,
             lateral (select case when is_another then $3::float8
               else least(2 * circuit.probe_delay_ms, $4::float8) end as delay) grown)
         -- Several attempts may fail at once; only the first of them delays the next probe.
         where circuit.opened_at is null or ${isProbeDue('excluded.opened_at', 'circuit.')}
         returning incident_id, next_probe_at = opened_at + probe_delay_ms * interval '1 millisecond' as is_new`,
        [
          destination,
          error,
          settings.EXPORTD_S3_PROBE_INITIAL,
          settings.EXPORTD_S3_PROBE_MAX,
          relapseSeconds,
        ],
      );
      const [opened] = rows;
      if (opened?.is_new === true)
        logger.warn(await describe(destination, opened.incident_id), `The bucket does not respond: ${error}`);
    },
  };
}

type OutageSettings = ProbeSettings &
  Pick<Settings, 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL' | 'EXPORTD_ACTIVITY_RETRY_INITIAL'>;

/** One attempt of a step of a run. */
interface RunAttempt {
  readonly runId: string;
  /** Counted from 1. */
  readonly number: number;
  /** A local activity cannot wait for its next attempt: it fails, and its workflow calls it as an ordinary one. */
  readonly isLocal: boolean;
  /** Whether it sends requests to the destination. */
  readonly needsDestination: boolean;
}

/**
 * What runs wait for: a destination that does not respond, or something that the operator has to fix. All runs with the same
 * cause wait, and one tries. The others fail without reaching a server, with the time of their next attempt, which Temporal
 * keeps without a slot and without an event of the history.
 *
 * | cause                | known to                                   | who tries                        | ends                   |
 * | -------------------- | ------------------------------------------ | -------------------------------- | ---------------------- |
 * | circuit              | all workers, by a row of each destination  | a probe of the leased worker     | with its response      |
 * | operator's fault     | each worker: it may concern only that one  | one waiting run of each worker   | with that run's success |
 */
export interface Outages {
  /** Whether destinations respond. `openDestination` asks before it sends anything. */
  readonly circuits: Circuits;
  /**
   * Runs an attempt, unless its run waits for a cause that this process knows. Records whether it ended with an operator's
   * fault; the circuits are recorded where the requests are sent.
   * @throws ApplicationFailure, with the time of the next attempt while the run waits
   */
  attempt<Result>(attempt: RunAttempt, work: () => Promise<Result>): Promise<Result>;
}

/** Creates the outages of a process. Of all processes, one logs when an outage begins, and one when it ends. */
export function createOutages(pool: Pool, settings: OutageSettings, logger: Logger): Outages {
  const circuits = createCircuitBreaker(createCircuitStore(pool, settings, logger), settings);
  const pacing = createFaultPacing(settings);
  const store = async (runId: string, write: () => Promise<void>): Promise<void> => {
    await write().catch(() =>
      logger.warn({ run_id: runId }, "An operator's fault could not be stored in the control database."),
    );
  };
  /** Records that a run tried and failed. Returns after how many milliseconds it tries again. */
  const failed = async ({ runId, number }: RunAttempt, fault: OperatorFault): Promise<number> => {
    const { wait_ms } = pacing.failed(runId, fault, number);
    await store(runId, () => storeFault(pool, logger, runId, fault));
    return wait_ms;
  };
  /** Records that a run tried and succeeded (`isFixed`), or failed for another reason. */
  const resumed = async ({ runId, number }: RunAttempt, isFixed: boolean): Promise<void> => {
    const fault = isFixed ? pacing.succeeded(runId) : pacing.leave(runId);
    // An earlier attempt may have failed in another process.
    if (fault || number > 1) await store(runId, () => storeResumption(pool, runId));
  };
  return {
    circuits,
    attempt: async (attempt, work) => {
      const { runId, isLocal, needsDestination } = attempt;
      const failureOfWait = ({ fault, wait_ms }: FaultWait) =>
        failureOf({ ...fault, owner: 'operator', permanent: isLocal, retry_delay_ms: wait_ms });
      // The circuit first: the pacing lets one run try, and that one must not be turned away after it.
      const silent = needsDestination ? circuits.waitOf(runId) : undefined;
      if (silent) throw toApplicationFailure(silent);
      const known = pacing.admit(runId);
      if (known) throw failureOfWait(known);
      let fault: OperatorFault | undefined;
      let isFixed = false;
      try {
        const result = await work();
        isFixed = true;
        return result;
      } catch (error) {
        fault = operatorFaultOf(error);
        if (!fault) throw error;
        throw failureOfWait({ fault, wait_ms: await failed(attempt, fault) });
      } finally {
        if (!fault) await resumed(attempt, isFixed);
      }
    },
  };
}

/** An operator's fault that a run waits for, and when its step is tried again. */
interface FaultWait {
  readonly fault: OperatorFault;
  readonly wait_ms: number;
}

interface PacedFault {
  readonly fault: OperatorFault;
  /** Consecutive attempts that were due and failed. */
  failures: number;
  nextTryAt: number;
}

/** Bounds of the memory of a process. A forgotten run tries once more than necessary. */
const maxWaitingRuns = 10_000;
const maxFaults = 1_000;
/** Waiting runs come back at different times: this many milliseconds apart, but at most one interval late. */
const spreadMsPerRun = 5;

/**
 * Faults that another worker may not have, and that reach no server: each run tries again on its own, and soon, because
 * Temporal may give it to another worker.
 */
const unpacedTypes: ReadonlySet<string> = new Set(['SecretUnreadable']);

/**
 * Decides which of the waiting runs of a process tries again. Of all runs that wait for one operator's fault, one tries at a
 * time; the others fail again without reaching a server. The first attempts follow each other quickly, in case the fault is
 * a short one. Times are in milliseconds.
 */
export function createFaultPacing(
  settings: Pick<Settings, 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL' | 'EXPORTD_ACTIVITY_RETRY_INITIAL'>,
  { now, random }: { now: () => number; random: () => number } = {
    // Not the time of day, which may be set back by hours.
    now: () => performance.now(),
    random: Math.random,
  },
) {
  const interval = settings.EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL;
  const initial = settings.EXPORTD_ACTIVITY_RETRY_INITIAL;
  const faults = new BoundedMap<string, PacedFault>(maxFaults);
  const causes = new BoundedMap<string, string>(maxWaitingRuns);
  const waitOf = ({ nextTryAt }: PacedFault): number =>
    Math.ceil(
      Math.max(1, nextTryAt - now()) + random() * Math.min(interval, initial + causes.size * spreadMsPerRun),
    );
  const intervalAfter = (failures: number): number =>
    Math.min(interval, initial * 2 ** Math.min(failures - 1, 20));
  const forget = (runId: string): PacedFault | undefined => {
    const known = faults.get(causes.get(runId) ?? '');
    causes.delete(runId);
    return known;
  };
  return {
    /** The fault that a run has to wait for without trying; undefined when it may try. */
    admit: (runId: string): FaultWait | undefined => {
      const waiting = faults.get(causes.get(runId) ?? '');
      if (!waiting) {
        causes.delete(runId);
        return undefined;
      }
      if (unpacedTypes.has(waiting.fault.type)) return undefined;
      if (now() < waiting.nextTryAt) return { fault: waiting.fault, wait_ms: waitOf(waiting) };
      // Others wait until this attempt has ended, or has hung for as long.
      waiting.nextTryAt = now() + intervalAfter(waiting.failures + 1);
      return undefined;
    },
    /**
     * Records that a run tried for the `attempt`th time, counted from 1, and failed.
     */
    failed: (runId: string, fault: OperatorFault, attempt: number): FaultWait => {
      const cause = causeOf(fault);
      const known = faults.get(cause);
      const isDue = causes.get(runId) === cause || !known;
      const paced = known ?? { fault, failures: 0, nextTryAt: 0 };
      if (isDue) {
        paced.failures += 1;
        paced.nextTryAt = now() + intervalAfter(paced.failures);
      }
      faults.set(cause, paced);
      causes.set(runId, cause);
      const wait_ms = unpacedTypes.has(fault.type)
        ? Math.ceil(intervalAfter(attempt) * (1 + random()))
        : waitOf(paced);
      return { fault, wait_ms };
    },
    /** Records that a waiting run tried and succeeded, which lets all others try. Returns the fault that it waited for. */
    succeeded: (runId: string): OperatorFault | undefined => {
      const known = forget(runId);
      if (known) faults.delete(causeOf(known.fault));
      return known?.fault;
    },
    /** Records that a run tried and failed for another reason: its former fault may still be there. */
    leave: (runId: string): OperatorFault | undefined => forget(runId)?.fault,
  };
}
