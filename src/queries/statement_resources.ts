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

/** What a query's statements may use, as PostgreSQL writes it. */
export const statementResources = (settings: StatementResourceSettings): StatementResources => ({
  work_mem: kilobytes(settings.EXPORTD_QUERY_WORK_MEM),
  temp_file_limit: kilobytes(settings.EXPORTD_QUERY_TEMP_FILE_LIMIT),
});
