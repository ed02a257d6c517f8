/** What people ask of the table of an export, the target. A worker answers, since only workers decrypt what that requires. */
import { bounds } from '../config/bounds.ts';
import type { Settings } from '../config/settings.ts';
import type { TableStore } from '../tables/table_store.ts';
import { handlerOf, type JobHandler, type JobKind, type JobDependencies } from '../jobs/jobs.ts';
import type { TableDescription, TableVersion } from '../tables/describe.ts';
import type { TableRepairOutcome } from '../tables/repair.ts';
import type { TableCheck } from './check_table.ts';

const names = {
  description: 'table_description',
  history: 'table_history',
  check: 'table_check',
  repair: 'table_repair',
} as const;

const common = {
  limit: { kinds: Object.values(names), max: bounds.tableRequests.max },
  attempts: 3,
  isKept: false,
} as const;

/** What a page or a command shows of a table. */
const reading = {
  ...common,
  timeoutMs: ({ EXPORTD_TABLE_READ_TIMEOUT }: Settings) => EXPORTD_TABLE_READ_TIMEOUT,
} as const;

type Nothing = Record<string, never>;

export const tableDescriptionJob: JobKind<Nothing, TableDescription> = {
  ...reading,
  name: names.description,
  workflowType: 'batchExportTableDescription',
  summary: 'Description of a table',
};

/** Which versions: so many, before this one. */
export interface HistoryParameters {
  readonly before: number | null;
  readonly limit: number;
}

/** Its versions, the newest first. */
export interface TableHistory {
  readonly versions: readonly TableVersion[];
}

export const tableHistoryJob: JobKind<HistoryParameters, TableHistory> = {
  ...reading,
  name: names.history,
  workflowType: 'batchExportTableHistory',
  summary: 'History of a table',
};

/** What reads all of a table, which can be large. A client polls it, and its requests to the store have limits of their own. */
const whole = { ...common, timeoutMs: () => 55 * 60_000 } as const;

export const tableCheckJob: JobKind<Nothing, TableCheck> = {
  ...whole,
  name: names.check,
  workflowType: 'batchExportTableCheck',
  summary: 'Check of a table',
};

export const tableRepairJob: JobKind<Nothing, TableRepairOutcome> = {
  ...whole,
  name: names.repair,
  workflowType: 'batchExportTableRepair',
  summary: 'Repair of a table',
};

/** How long requests about a table repeat failed requests to its bucket. */
const retryBudgetMs = 20_000;

/** The handlers of all kinds. What they read with is large, and most workers never need it. */
export function createTableHandlers({
  pool,
  keyRing,
  settings,
  logger,
}: JobDependencies): readonly JobHandler[] {
  const readingOf = (batch_export_id: string) => ({
    pool,
    keyRing,
    settings: { ...settings, EXPORTD_S3_RETRY_BUDGET: retryBudgetMs },
    onError: ({ type, message }: { readonly type: string; readonly message: string }) => {
      logger.warn({ batch_export_id, type }, `Reading a table repeats a request. ${message}`);
    },
  });
  const withTable = async <Result>(
    batchExportId: string,
    use: (table: TableStore) => Promise<Result>,
  ): Promise<Result> => {
    const reading = await import('./check_table.ts');
    return reading.withTable(readingOf(batchExportId), batchExportId, ({ table }) => use(table));
  };
  return [
    handlerOf(tableDescriptionJob, ({ target }, signal) =>
      withTable(target, async (table) => {
        const { describeTable } = await import('../tables/describe.ts');
        const description = await describeTable(table, signal);
        if (!description) throw (await import('./check_table.ts')).absentTable(table);
        return description;
      }),
    ),
    handlerOf(tableHistoryJob, ({ target, parameters }, signal) =>
      withTable(target, async (table) => {
        const { readHistory } = await import('../tables/describe.ts');
        return { versions: await readHistory(table, parameters, signal) };
      }),
    ),
    handlerOf(tableCheckJob, async ({ target }, signal) => {
      const { checkTable } = await import('./check_table.ts');
      return checkTable(readingOf(target), target, signal);
    }),
    handlerOf(tableRepairJob, async ({ id, target }, signal) => {
      const { repairTable } = await import('./repair_table.ts');
      return repairTable(readingOf(target), { batchExportId: target, repairId: id, signal });
    }),
  ];
}
