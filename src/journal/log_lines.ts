import type { Connection, Pool } from './database.ts';

/** The levels of a log line, least important first. */
export const logLevels = ['DEBUG', 'INFO', 'WARNING', 'ERROR'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A line of an export's log. It is visible to users and contains no stack traces, secrets or rows. */
export interface LogLine {
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly run_id: string | null;
  readonly level: LogLevel;
  readonly message: string;
}

/** Writes a log line. Log lines are not part of the journal: they expire, and no projection depends on them. */
export async function writeLogLine(database: Pool | Connection, line: LogLine): Promise<void> {
  await database.query(
    'insert into exportd.log_lines (team_id, batch_export_id, run_id, level, message) values ($1, $2, $3, $4, $5)',
    [line.team_id, line.batch_export_id, line.run_id, line.level, line.message],
  );
}
