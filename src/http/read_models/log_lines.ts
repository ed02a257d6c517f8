import type { Pool } from '../../journal/database.ts';
import type { LogLevel } from '../../journal/journal.ts';
import type { LogLineResponse, LogsQuery } from '../schemas/log_line.ts';

/** A page of an export's log, newest first. */
export async function listLogLines(
  pool: Pool,
  batchExportId: string,
  query: Omit<LogsQuery, 'level'> & { readonly levels: readonly LogLevel[] | undefined },
): Promise<{ count: number; results: LogLineResponse[] }> {
  const condition = `batch_export_id = $1
    and ($2::text[] is null or level = any($2))
    and ($3::timestamptz is null or timestamp >= $3::timestamptz + interval '1 millisecond')
    and ($4::timestamptz is null or timestamp < $4)
    and ($5::text is null or strpos(lower(message), lower($5)) > 0)
    and ($6::uuid is null or run_id = $6)`;
  const values = [
    batchExportId,
    query.levels ?? null,
    query.after ?? null,
    query.before ?? null,
    query.search ?? null,
    query.run_id ?? null,
  ];
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count from exportd.log_lines where ${condition}`,
    values,
  );
  const { rows } = await pool.query<LogLineResponse>(
    `select timestamp, level, message, run_id as instance_id, batch_export_id as log_source_id
     from exportd.log_lines where ${condition} order by timestamp desc, id desc limit $7 offset $8`,
    [...values, query.limit, query.offset],
  );
  return { count: counted.rows[0]?.count ?? 0, results: rows };
}
