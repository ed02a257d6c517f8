import type { CompletedFile, PlannedPart, SortKey } from '../../domain/exported_files.ts';
import type { RunProgress } from '../../domain/run_state.ts';
import type { Connection } from '../../journal/database.ts';

/** By range: the rows and bytes planned for its open file, and the last exported sort key. */
type OpenParts = Readonly<
  Record<string, { readonly rows: number; readonly bytes: number; readonly last: SortKey | null }>
>;

interface Step {
  readonly generation: number;
  readonly range: number;
}

/** Starts a file, which replaces the range's unfinished one. */
export const startParts = (connection: Connection, runId: string, at: string, step: Step): Promise<void> =>
  change(connection, runId, at, step, ({ last }) => ({ rows: 0, bytes: 0, last }), {});

/** A later attempt resumes after these rows and bytes. */
export const resumeParts = (
  connection: Connection,
  runId: string,
  at: string,
  step: Step & { readonly rows: number; readonly bytes: number },
): Promise<void> =>
  change(connection, runId, at, step, ({ last }) => ({ rows: step.rows, bytes: step.bytes, last }), {});

/** Adds a planned part. */
export const planPart = (
  connection: Connection,
  runId: string,
  at: string,
  step: Step & { readonly part: PlannedPart },
): Promise<void> =>
  change(
    connection,
    runId,
    at,
    step,
    ({ rows, bytes, last }) => ({
      rows: rows + step.part.rows,
      bytes: bytes + step.part.bytes,
      last: step.part.last ?? last,
    }),
    {},
  );

/** Completes the file: its parts are counted as a file from here on. */
export const finishParts = (
  connection: Connection,
  runId: string,
  at: string,
  step: Step & { readonly file: CompletedFile },
): Promise<void> =>
  change(connection, runId, at, step, ({ last }) => ({ rows: 0, bytes: 0, last: step.file.last ?? last }), {
    file: step.file,
  });

/** The open parts of a run that resumes from the progress of another. */
export const inheritedParts = ({ ranges }: RunProgress): OpenParts =>
  Object.fromEntries(
    ranges.map(({ upload, files }, range) => {
      const parts = upload?.parts ?? [];
      return [
        String(range),
        {
          rows: parts.reduce((sum, part) => sum + part.rows, 0),
          bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
          last: parts.at(-1)?.last ?? files.last,
        },
      ] as const;
    }),
  );

/** The cursor, opaque to users: the last exported key of each range. Null before the first part. */
export function cursorOf(generation: number, parts: OpenParts): string | null {
  const reached = Object.fromEntries(Object.entries(parts).map(([range, { last }]) => [range, last]));
  if (Object.values(reached).every((last) => last === null)) return null;
  return Buffer.from(JSON.stringify({ generation, ranges: reached })).toString('base64url');
}

/** Changes the open parts of one range. The run's totals never decrease, even if an attempt starts over. */
async function change(
  connection: Connection,
  runId: string,
  at: string,
  { generation, range }: Step,
  next: (before: OpenParts[string]) => OpenParts[string],
  { file }: { readonly file?: CompletedFile },
): Promise<void> {
  const { rows } = await connection.query<{ open_parts: OpenParts }>(
    'select open_parts from exportd.batch_export_runs where id = $1',
    [runId],
  );
  const before = rows[0]?.open_parts ?? {};
  const parts: OpenParts = {
    ...before,
    [range]: next(before[range] ?? { rows: 0, bytes: 0, last: null }),
  };
  const open = Object.values(parts);
  await connection.query(
    `update exportd.batch_export_runs set last_updated_at = $2, open_parts = $3, cursor = $4, files = files + $5,
       file_rows = file_rows + $6, file_bytes = file_bytes + $7,
       records_completed = greatest(records_completed, file_rows + $6 + $8),
       bytes = greatest(bytes, file_bytes + $7 + $9),
       -- Parts that were lost and are sent again are no progress.
       latest_error = case when $5 = 0 and file_rows + $6 + $8 <= records_completed then latest_error end
     where id = $1`,
    [
      runId,
      at,
      JSON.stringify(parts),
      cursorOf(generation, parts),
      file ? 1 : 0,
      file?.rows ?? 0,
      file?.bytes ?? 0,
      open.reduce((sum, part) => sum + part.rows, 0),
      open.reduce((sum, part) => sum + part.bytes, 0),
    ],
  );
}
