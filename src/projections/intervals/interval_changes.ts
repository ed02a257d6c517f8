import { fingerprintHashOf } from '../../domain/fingerprint.ts';
import { totalOf } from '../../domain/fingerprint_total.ts';
import type { MissingRows } from '../../domain/replacement.ts';
import { type ExistingRun, filesOf } from '../../domain/run_state.ts';
import type { RunEvent } from '../../domain/run_events.ts';
import type { Connection } from '../../journal/database.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';

type RunEventData<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>['data'];

/** Changes the row of a run's interval; `run` is the run after the event. */
type IntervalChange = (connection: Connection, run: ExistingRun, stored: StoredEvent) => Promise<void>;

/** SQL condition: the row of the run's interval; $1 to $3 are `intervalKey`. */
const isInterval = 'batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3';
const intervalKey = ({ spec }: ExistingRun) => [
  spec.batch_export_id,
  spec.data_interval_start,
  spec.data_interval_end,
];

/** Returns how an event of a run changes its interval; undefined if it does not. */
export function intervalChangeOf(event: RunEvent): IntervalChange | undefined {
  switch (event.type) {
    case 'RunCompleted':
      return recordManifest(event.data);
    case 'RunSettled':
      return recordSettling(event.data);
    case 'RunKeyTaken':
      return recordTakenKey;
    case 'RunFailed':
      return recordEnd({ isRetried: false, held: event.data.held });
    case 'RunTerminated':
    case 'RunCancelled':
      return recordEnd({ isRetried: false });
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      return recordEnd({ isRetried: event.data.retry_delay_seconds !== null });
    case 'RunRetryCancelled':
      return recordEnd({ isRetried: false });
    default:
      return undefined;
  }
}

/** Records how the newest run ended without a manifest. An earlier manifest stays current. */
const recordEnd =
  ({
    isRetried,
    held,
  }: {
    readonly isRetried: boolean;
    readonly held?: MissingRows | undefined;
  }): IntervalChange =>
  async (connection, run, stored) => {
    // A person ended the run. This says nothing about the rows of an earlier manifest.
    const isDeliberate = run.status === 'Cancelled' || run.status === 'Terminated';
    await connection.query({
      name: 'interval-ended',
      text: `update exportd.intervals interval set status = ended.status, held = ended.held,
          reason = case when ended.status in ('failed', 'gap') then $5 end
        from (
          select end_of_run.held, case
            when $6 then 'failed'
            when end_of_run.held is not null then 'held'
            when manifest_run_id is null then 'gap'
            when not $7 then 'failed'
            when settled or settling_outcome is not null then 'exported'
            else 'unsettled' end as status
          -- A person who ends the next run does not decide about the rows that a run was held for.
          from exportd.intervals cross join lateral (
            select case when $7 then held else $8::jsonb end as held) end_of_run
          where ${isInterval}) ended
        where ${isInterval} and run_id = $4`,
      values: [
        ...intervalKey(run),
        stored.stream_id,
        run.status,
        isRetried,
        isDeliberate,
        held && JSON.stringify(held),
      ],
    });
  };

/** Records the manifest of a Completed run, which is the current one from here on. */
const recordManifest =
  ({ expires_at }: RunEventData<'RunCompleted'>): IntervalChange =>
  async (connection, run, stored) => {
    const files = filesOf(run);
    const exported = [files.fingerprint, run.rejected_file?.fingerprint].flatMap((rows) => rows ?? []);
    const hash = fingerprintHashOf(run.spec.model);
    const { kept, earlier } = run.earlier_generations;
    await connection.query({
      name: 'interval-exported',
      text: `update exportd.intervals set status = case when $10 then 'exported' else 'unsettled' end, reason = null,
          held = null, manifest_run_id = $4, generation = $5, rows = $6, rejected_rows = $7, bytes = $8, files = $9,
          settled = $10, settling_outcome = null, completed_at = $11, expires_at = $12, source_fingerprint = $13,
          bucket_fingerprint = $14, kept_files = $15, earlier_files = $16
        where ${isInterval}`,
      values: [
        ...intervalKey(run),
        stored.stream_id,
        run.generation,
        files.rows,
        run.rejected_file?.rows ?? 0,
        files.bytes,
        files.count,
        run.settled,
        stored.recorded_at,
        earliest([expires_at, files.expires_at]),
        run.finished && JSON.stringify(totalOf(hash, [run.finished.fingerprint])),
        JSON.stringify(totalOf(hash, exported)),
        kept.length,
        earlier.length,
      ],
    });
  };

/** Records what followed once the transactions had ended that the run of the manifest did not wait for. */
const recordSettling =
  ({ outcome }: RunEventData<'RunSettled'>): IntervalChange =>
  async (connection, run, stored) => {
    await connection.query(
      `update exportd.intervals set settling_outcome = $5,
         status = case status when 'unsettled' then 'exported' else status end
       where ${isInterval} and manifest_run_id = $4`,
      [...intervalKey(run), stored.stream_id, outcome],
    );
  };

/** Counts a key that another object has. */
const recordTakenKey: IntervalChange = async (connection, run) => {
  await connection.query(
    `update exportd.intervals set taken_keys = taken_keys + 1 where ${isInterval}`,
    intervalKey(run),
  );
};

/** The earliest of these times (ISO 8601); null if all are null. */
const earliest = (times: readonly (string | null)[]): string | null =>
  times.filter((time) => time !== null).toSorted((one, other) => Date.parse(one) - Date.parse(other))[0] ??
  null;
