import type { Connection, Pool } from './database.ts';

/** The levels of a line, the least important first. */
export const logLevels = ['DEBUG', 'INFO', 'WARNING', 'ERROR'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A line of an export's log, written for its users: no stack, no secret, no row. */
export interface LogLine {
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly run_id: string | null;
  readonly level: LogLevel;
  readonly message: string;
}

/** Writes a line. Log lines are no facts of the journal: they are deleted after a while, and nothing is folded from them. */
export async function writeLogLine(database: Pool | Connection, line: LogLine): Promise<void> {
  await database.query(
    'insert into exportd.log_lines (team_id, batch_export_id, run_id, level, message) values ($1, $2, $3, $4, $5)',
    [line.team_id, line.batch_export_id, line.run_id, line.level, line.message],
  );
}
