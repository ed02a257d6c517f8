import type { Settings } from '../../config/settings.ts';
import type { OpenCircuit } from '../../domain/circuit.ts';
import type { Pool } from '../../journal/database.ts';

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

/** Settings of probes. */
export type ProbeSettings = Pick<
  Settings,
  'EXPORTD_S3_PROBE_AFTER' | 'EXPORTD_S3_PROBE_INITIAL' | 'EXPORTD_S3_PROBE_MAX' | 'EXPORTD_S3_PROBE_TIMEOUT'
>;

/** The circuits in the control database. */
export interface CircuitStore {
  read(destination: string): Promise<StoredCircuit>;
  /**
   * Takes the lease that allows one probe of a destination: of an open circuit when it is due, of a closed one unless the
   * destination has responded within EXPORTD_S3_PROBE_AFTER. A lost worker's lease expires.
   * @returns whether this worker may probe
   */
  leaseProbe(destination: string): Promise<boolean>;
  /** Records a response. It closes no open circuit: only a probe does. */
  recordResponse(destination: string): Promise<void>;
  /** Closes the circuit and releases the lease after the destination has responded to a probe. */
  close(destination: string): Promise<void>;
  /** Opens the circuit, or delays the next probe of an open one when that was due. */
  open(destination: string, error: string): Promise<void>;
}

/** A lease outlasts its probe by this time, in milliseconds. */
const leaseMarginMs = 1_000;
/** A circuit that opens again within this time after it closed continues with longer delays. */
const relapseSeconds = 60;

/** SQL: milliseconds from one time to another. */
const msBetween = (from: string, to: string): string =>
  `(extract(epoch from ${to} - ${from}) * 1000)::float8`;

/** Creates the store. */
export function createCircuitStore(pool: Pool, settings: ProbeSettings): CircuitStore {
  return {
    read: async (destination) => {
      const { rows } = await pool.query<
        Omit<StoredCircuit, 'open'> & { [Column in keyof OpenCircuit]: OpenCircuit[Column] | null }
      >(
        `select error, opened_at, next_probe_at, coalesce(${msBetween('opened_at', 'now')}, 0) as open_for_ms,
           coalesce(${msBetween('now', 'next_probe_at')}, 0) as next_probe_in_ms,
           ${msBetween('responded_at', 'now')} as responded_ms_ago,
           case when leased_until > now then ${msBetween('probe_started_at', 'now')} end as probing_for_ms
         from exportd.destination_circuits cross join clock_timestamp() as now where destination = $1`,
        [destination],
      );
      const [row] = rows;
      if (!row) return unknownCircuit;
      const { error, opened_at, next_probe_at, ...times } = row;
      const isOpen = error !== null && opened_at !== null && next_probe_at !== null;
      return { ...times, open: isOpen ? { error, opened_at, next_probe_at } : null };
    },
    leaseProbe: async (destination) => {
      const { rowCount } = await pool.query(
        `insert into exportd.destination_circuits as circuit (destination, probe_started_at, leased_until)
         select $1, now, now + $2 * interval '1 millisecond' from clock_timestamp() as now
         on conflict (destination) do update set
           probe_started_at = excluded.probe_started_at, leased_until = excluded.leased_until
         where (circuit.leased_until is null or circuit.leased_until < excluded.probe_started_at)
           and case when circuit.opened_at is not null then circuit.next_probe_at <= excluded.probe_started_at
             else coalesce(circuit.responded_at < excluded.probe_started_at - $3 * interval '1 millisecond', true) end`,
        [destination, settings.EXPORTD_S3_PROBE_TIMEOUT + leaseMarginMs, settings.EXPORTD_S3_PROBE_AFTER],
      );
      return rowCount === 1;
    },
    recordResponse: async (destination) => {
      await pool.query(
        `insert into exportd.destination_circuits as circuit (destination, responded_at)
         values ($1, clock_timestamp())
         on conflict (destination) do update set responded_at = excluded.responded_at
         where circuit.opened_at is null`,
        [destination],
      );
    },
    close: async (destination) => {
      await pool.query(
        `insert into exportd.destination_circuits as circuit (destination, responded_at)
         values ($1, clock_timestamp())
         on conflict (destination) do update set
           responded_at = excluded.responded_at,
           closed_at = case when circuit.opened_at is null then circuit.closed_at else excluded.responded_at end,
           opened_at = null, error = null, next_probe_at = null, leased_until = null`,
        [destination],
      );
    },
    open: async (destination, error) => {
      await pool.query(
        `insert into exportd.destination_circuits as circuit
           (destination, error, opened_at, probe_delay_ms, next_probe_at)
         select $1, $2, now, $3::float8, now + $3::float8 * interval '1 millisecond' from clock_timestamp() as now
         on conflict (destination) do update set
           (error, opened_at, leased_until, probe_delay_ms, next_probe_at) = (
             select excluded.error, coalesce(circuit.opened_at, excluded.opened_at), null::timestamptz, delay,
               excluded.opened_at + delay * interval '1 millisecond'
             from (select case
               when circuit.opened_at is null and coalesce(circuit.closed_at < excluded.opened_at - $5 * interval '1 second', true)
               then $3::float8 else least(2 * circuit.probe_delay_ms, $4::float8) end as delay) grown)
         -- Several attempts may fail at once; only the first of them delays the next probe.
         where circuit.opened_at is null or circuit.next_probe_at <= excluded.opened_at`,
        [
          destination,
          error,
          settings.EXPORTD_S3_PROBE_INITIAL,
          settings.EXPORTD_S3_PROBE_MAX,
          relapseSeconds,
        ],
      );
    },
  };
}
