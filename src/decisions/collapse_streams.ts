/** Replaces the streams of runs and backfills by one digest in the stream of their export. */
import type { BatchExportEvent, BatchExportState, HistoryDigest } from '../domain/batch_export.ts';
import type { Connection } from '../journal/database.ts';
import type { LockedStream } from '../journal/journal.ts';

/** Appends the digest, and marks the streams that it replaces. `sweepStreams` deletes them. */
export async function collapseStreams(
  connection: Connection,
  stream: ExportStream,
  digest: HistoryDigest,
): Promise<void> {
  const ids = [...digest.run_ids, ...digest.backfill_ids];
  await connection.query(
    `update exportd.journal_streams set collapsed_at = clock_timestamp()
     where stream_type = 'run' and stream_id = any($1) or stream_type = 'backfill' and stream_id = any($2)`,
    [digest.run_ids, digest.backfill_ids],
  );
  // No id is collapsed twice, so that the first one tells batches apart.
  await stream.append(`collapsed:${ids[0] ?? ''}`, [{ type: 'HistoryCollapsed', data: digest }]);
}

export type ExportStream = LockedStream<BatchExportState, BatchExportEvent>;
