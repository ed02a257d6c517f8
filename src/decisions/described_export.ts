import { codeOf, escapeMarkdown, type Fact } from '../contract/markdown.ts';
import type { Pool } from '../journal/database.ts';

/** What the Temporal UI says of an export. Names and times only: workflow histories contain no config and no secrets. */
export interface DescribedExport {
  readonly id: string;
  readonly team_id: number;
  readonly name: string;
  readonly model: string;
  readonly interval: string;
  readonly timezone: string;
  /** Bucket and prefix, such as `s3://bucket/prefix`; null if the config is gone. */
  readonly destination_uri: string | null;
}

/** An export with what its schedule shows besides. */
export interface ScheduledExport extends DescribedExport {
  readonly destination_type: string;
  /** Null before its create command is decided. */
  readonly status: 'Active' | 'Paused' | 'Deleted' | null;
}

/** The search attributes of a schedule workflow, except the id of its export. */
export interface ScheduleAttributes {
  readonly project: string;
  readonly name: string;
  readonly model: string;
  readonly destination: string;
  readonly status: 'Active' | 'Paused' | 'Deleted';
}

/**
 * SQL: bucket and prefix of a config.
 * @param batchExportId an SQL expression, like `version`
 */
export const destinationUri = (batchExportId: string, version: string): string => `
  (select 's3://' || concat_ws('/', config.config->>'bucket_name', nullif(config.config->>'prefix', ''))
   from exportd.destination_configs config
   where config.batch_export_id = ${batchExportId} and config.version = ${version})`;

/**
 * Reads what to say of an export. Before its create command is decided, that command says it; undefined if there is neither.
 */
export async function readDescribedExport(pool: Pool, id: string): Promise<ScheduledExport | undefined> {
  const { rows } = await pool.query<ScheduledExport>(
    `select described.id, team_id, name, model, interval, timezone, destination_type, status,
       ${destinationUri('described.id', 'described.config_version')} as destination_uri
     from (
       select id, team_id, name, model, interval, timezone, config_version, destination_type,
         case when deleted then 'Deleted' when paused then 'Paused' else 'Active' end as status
       from exportd.batch_exports where id = $1
       union all
       select batch_export_id, team_id, definition->>'name', definition->>'model', definition->>'interval',
         definition->>'timezone', (definition->>'config_version')::integer, definition->>'destination_type', null
       from exportd.commands, lateral (select body->'definition' as definition) created
       where batch_export_id = $1 and commands.name = 'create'
     ) described limit 1`,
    [id],
  );
  return rows[0];
}

/** Null before the create command of the export is decided. */
export const attributesOf = ({
  status,
  team_id,
  name,
  model,
  destination_type: destination,
}: ScheduledExport): ScheduleAttributes | null =>
  status && { project: String(team_id), name, model, destination, status };

/** `hour` becomes `every hour`. */
export const intervalText = (interval: string): string => `every ${interval.replace(/^every /, '')}`;

/** What the Temporal UI lists of an export. */
export const factsOf = (described: DescribedExport): Fact[] => [
  ['Rows', `${escapeMarkdown(described.model)}, ${intervalText(described.interval)}, ${described.timezone}`],
  ['Destination', codeOf(described.destination_uri)],
  ['Export', codeOf(described.id)],
];
