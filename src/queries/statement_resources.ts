import type { Settings } from '../config/settings.ts';
import type { StatementResources } from '../source/source_connection.ts';

/** The settings of what a query's statements may use in PostgreSQL. */
export type StatementResourceSettings = Pick<
  Settings,
  'EXPORTD_QUERY_WORK_MEM' | 'EXPORTD_QUERY_TEMP_FILE_LIMIT'
>;

/** PostgreSQL's largest value of a setting in kB. */
const maxKilobytes = 2_147_483_647;

const kilobytes = (bytes: number): string => `${Math.min(Math.ceil(bytes / 1_024), maxKilobytes)}kB`;

/** PostgreSQL's smallest `work_mem`. */
const minWorkMem = 64 * 1_024;

/** So many sorts and hash tables of a statement may each use all of `work_mem`; more of them share that memory. */
const fullOperations = 8;

/** The `work_mem` of a statement that may keep so many sorts and hash tables in memory at the same time. */
export const workMemOf = (
  { EXPORTD_QUERY_WORK_MEM: bytes }: Pick<Settings, 'EXPORTD_QUERY_WORK_MEM'>,
  memoryOperations: number,
): string =>
  kilobytes(Math.max(minWorkMem, (bytes * fullOperations) / Math.max(memoryOperations, fullOperations)));

/** What a query's statements may use, as PostgreSQL writes it. */
export const statementResources = (settings: StatementResourceSettings): StatementResources => ({
  work_mem: workMemOf(settings, 0),
  temp_file_limit: kilobytes(settings.EXPORTD_QUERY_TEMP_FILE_LIMIT),
});
