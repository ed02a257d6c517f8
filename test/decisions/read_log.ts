import type { Pool } from '../../src/journal/database.ts';

/** A line of the log of an export. */
interface LogLine {
  readonly level: string;
  readonly message: string;
  /** Null for a line of no run. */
  readonly run_id: string | null;
}

export const isWarning = ({ level }: LogLine): boolean => level === 'WARNING';
/** Whether a line is more than information. */
export const isProblem = ({ level }: LogLine): boolean => level !== 'INFO';

/** Reads the messages of an export or of a run, oldest first, and of its lines those that `keeps` keeps. */
export async function readLog(
  pool: Pool,
  of: { readonly batch_export_id: string } | { readonly run_id: string },
  keeps: (line: LogLine) => boolean = () => true,
): Promise<string[]> {
  const [[column, id] = []] = Object.entries(of);
  const { rows } = await pool.query<LogLine>(
    `select level, message, run_id from exportd.log_lines where ${String(column)} = $1 order by id`,
    [id],
  );
  return rows.filter(keeps).map(({ message }) => message);
}
