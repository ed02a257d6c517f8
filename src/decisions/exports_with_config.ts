import type { Model } from '../domain/batch_export.ts';
import type { ScheduleRevision } from '../domain/intervals.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { RowQuery } from '../source/row_selection.ts';

export interface ExportWithConfig {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  /** All revisions of its schedule, because a backfill can reach the past ones. Null while it is being created. */
  readonly revisions: readonly ScheduleRevision[] | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly config_version: number;
  readonly row_query: RowQuery | null;
}

/** Reads the live exports of one project or of all. */
export async function readExportsWithConfig(
  database: Pool | Connection,
  teamId: number | null,
): Promise<ExportWithConfig[]> {
  const { rows } = await database.query<ExportWithConfig>(
    `select export.id, export.team_id, export.model, export.config_version, stream.state->'revisions' as revisions, version.config, version.row_query
     from exportd.batch_exports export
     join exportd.destination_configs version
       on version.batch_export_id = export.id and version.version = export.config_version
     left join exportd.stream_states stream on stream.stream_type = 'batch_export' and stream.stream_id = export.id
     where not export.deleted and ($1::integer is null or export.team_id = $1)
     order by export.created_at, export.id`,
    [teamId],
  );
  return rows;
}
