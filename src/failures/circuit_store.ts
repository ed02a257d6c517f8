/** The circuits of destinations as rows that all workers share. */
import type { Settings } from '../config/settings.ts';
import { bucketName, type OpenCircuit } from '../domain/circuit.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';

/** The circuit of a destination as all workers share it. Times are relative, because only the database's clock counts. */
export interface StoredCircuit {
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

export type ProbeSettings = Pick<
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
