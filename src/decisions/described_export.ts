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
export async function readDescribedExport(pool: Pool, id: string): Promise<DescribedExport | undefined> {
  const { rows } = await pool.query<DescribedExport>(
    `select described.id, team_id, name, model, interval, timezone,
       ${destinationUri('described.id', 'described.config_version')} as destination_uri
     from (
       select id, team_id, name, model, interval, timezone, config_version from exportd.batch_exports where id = $1
       union all
       select batch_export_id, team_id, definition->>'name', definition->>'model', definition->>'interval',
         definition->>'timezone', (definition->>'config_version')::integer
       from exportd.commands, lateral (select body->'definition' as definition) created
       where batch_export_id = $1 and commands.name = 'create'
     ) described limit 1`,
    [id],
  );
  return rows[0];
}

/** `hour` becomes `every hour`. */
export const intervalText = (interval: string): string => `every ${interval.replace(/^every /, '')}`;

/** What the Temporal UI lists of an export. */
export const factsOf = (described: DescribedExport): Fact[] => [
  ['Rows', `${escapeMarkdown(described.model)}, ${intervalText(described.interval)}, ${described.timezone}`],
  ['Destination', codeOf(described.destination_uri)],
  ['Export', codeOf(described.id)],
];
