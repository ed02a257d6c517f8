import type { RangeFile } from '../../../decisions/earlier_generations.ts';
import type { CompletedFile, SortKey } from '../../../domain/exported_files.ts';
import type { ExistingRun } from '../../../domain/run_state.ts';
import type { Pool } from '../../../journal/database.ts';
import type { IntervalFile } from '../../schemas/console/interval_detail.ts';

/** The files of a response. */
export const maxFiles = 500;

interface FileRow {
  readonly range: number | null;
  readonly file: CompletedFile;
}

const selection = `select range, file from exportd.destination_objects
  where run_id = $1 and generation = $2 and file is not null`;

/** Reads the first files of a run's generation, in key order, with all their facts. */
export async function readFirstFiles(
  pool: Pool,
  runId: string,
  { generation }: Pick<ExistingRun, 'generation'>,
): Promise<RangeFile[]> {
  const { rows } = await pool.query<FileRow>(`${selection} order by range, position limit ${maxFiles}`, [
    runId,
    generation,
  ]);
  return rows.map(({ range, file }) => ({ ...file, range: range ?? 0 }));
}

/**
 * Finds the file of a run's generation whose key range contains a key. The times of keys have one form in UTC, and uuids
 * sort like their text.
 */
export async function findFileOfKey(
  pool: Pool,
  runId: string,
  { generation }: Pick<ExistingRun, 'generation'>,
  { inserted_at, id }: SortKey,
): Promise<IntervalFile | undefined> {
  const keyOf = (end: 'first' | 'last') =>
    `((file->'${end}'->>'inserted_at') collate "C", (file->'${end}'->>'id') collate "C")`;
  const { rows } = await pool.query<FileRow>(
    `${selection} and ${keyOf('first')} <= ($3::text, $4::text) and ${keyOf('last')} >= ($3::text, $4::text)
     order by range, position limit 1`,
    [runId, generation, inserted_at, id],
  );
  return rows[0] && toIntervalFile({ ...rows[0].file, range: rows[0].range ?? 0 });
}

/** A file without its fingerprint. */
export const toIntervalFile = (file: RangeFile): IntervalFile => ({
  key: file.key,
  range: file.range,
  rows: file.rows,
  bytes: file.bytes,
  crc32: file.crc32,
  first: file.first,
  last: file.last,
  rejected: file.rejected,
  expires_at: file.expires_at,
});
