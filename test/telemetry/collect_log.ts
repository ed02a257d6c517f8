import { createLogger, type Logger } from '../../src/telemetry/logger.ts';

/** A line of the log. */
export interface LogLine {
  readonly msg: string;
  readonly incident_id?: string;
  readonly [field: string]: unknown;
}

/** A logger whose lines a test reads. */
export function collectLog(): { readonly logger: Logger; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as LogLine);
  return { logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'info' }, { write }), lines };
}
