import { bounds } from '../src/config/bounds.ts';
import type { KeyRing } from '../src/config/key_ring.ts';
import type { Settings } from '../src/config/settings.ts';
import { classifyError, stackFramesOf } from '../src/failures/classify_error.ts';
import type { Pool } from '../src/journal/database.ts';
import type { Journal } from '../src/journal/journal.ts';
import { clearTableFault, storeTableFault } from '../src/table_commits/recorded_commits.ts';
import { findTableRequest, recordTableResult, type TableRequest } from '../src/tables/table_requests.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { CannotVerify } from '../src/verify/report.ts';
import { findVerification, recordVerification, type Verification } from '../src/verify/verifications.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

interface VerificationActivityDependencies {
  readonly pool: Pool;
  readonly journal: Journal;
  readonly keyRing: KeyRing;
  readonly settings: Settings;
  readonly logger: Logger;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type VerificationActivities = ReturnType<typeof createVerificationActivities>;

/** The activities of `batchExportVerification`. Only they decrypt the secrets that reading the bucket requires. */
export function createVerificationActivities(dependencies: VerificationActivityDependencies) {
  const { pool, settings, logger, context } = dependencies;
  return wrapActivities(
    { logger, context, heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT },
    {
      /**
       * Compares the objects of one interval with the source, as `exportd verify` does, and stores the report. It names
       * rows by their ids, so it stays out of the history. An error is an outcome too: the person can repeat it. The id may
       * also be that of a request about a table.
       */
      verifyInterval: async (
        { signal },
        { verification_id }: { readonly verification_id: string },
      ): Promise<void> => {
        const described = (error: unknown): { readonly error: string } => {
          if (signal.aborted) throw error;
          if (error instanceof CannotVerify) return { error: error.message };
          const { type, message } = classifyError(error);
          if (type === 'UnexpectedError') logger.error({ stack: stackFramesOf(error) }, message);
          return { error: message };
        };
        const found = await findVerification(pool, verification_id);
        if (found?.status === 'pending') {
          const outcome = await verify(dependencies, found, signal).catch(described);
          await recordVerification(pool, verification_id, outcome);
        }
        if (found) return;
        const request = await findTableRequest(pool, verification_id);
        if (request?.finished_at !== null) return;
        const outcome = await readTable(dependencies, request, signal).catch(described);
        await recordTableResult(pool, verification_id, outcome);
      },
    },
  );
}

/** How long a request about a table repeats failed requests to its bucket. */
const tableRetryBudgetMs = 20_000;

/** Does what was asked of a table. */
async function readTable(
  { pool, journal, keyRing, settings, logger }: VerificationActivityDependencies,
  { id, batch_export_id, operation, parameters }: TableRequest,
  signal: AbortSignal,
): Promise<{ readonly result: object }> {
  const [tables, { describeTable, readHistory }, { readSnapshot }, { readDefinition }, { repairTable }] =
    await Promise.all([
      import('../src/verify/check_table.ts'),
      import('../src/tables/describe.ts'),
      import('../src/tables/log.ts'),
      import('../src/verify/locations.ts'),
      import('../src/table_commits/repair_table.ts'),
    ]);
  const reading = {
    pool,
    keyRing,
    settings: { ...settings, EXPORTD_S3_RETRY_BUDGET: tableRetryBudgetMs },
    onError: ({ type, message }: { readonly type: string; readonly message: string }) => {
      logger.warn({ batch_export_id, type }, `Reading a table repeats a request. ${message}`);
    },
  };
  if (operation === 'repair')
    return {
      result: await repairTable(
        { ...reading, journal },
        { batchExportId: batch_export_id, repairId: id, signal },
      ),
    };
  const definition = await readDefinition(pool, batch_export_id);
  if (operation === 'check') {
    const { findings, ...result } = await tables.checkTable(reading, definition, signal);
    const [first] = findings;
    if (first) await storeTableFault(pool, definition, { type: 'TableChanged', message: first.detail });
    else await clearTableFault(pool, batch_export_id);
    return { result: { ...result, findings } };
  }
  const opened = await tables.openTable(reading, definition);
  if (!opened) throw new CannotVerify('The export has no table: its table_format is null.');
  const { table } = opened;
  try {
    if (operation === 'history') {
      const { before = null, limit = 50 } = parameters;
      return { result: { versions: await readHistory(table, { before, limit }, signal) } };
    }
    const snapshot = await readSnapshot(table, signal);
    if (!snapshot)
      throw new CannotVerify(`There is no table at ${table.name} yet. The first run with rows creates it.`);
    return { result: describeTable(table, snapshot) };
  } finally {
    opened.close();
  }
}

async function verify(
  { pool, keyRing, settings, logger }: VerificationActivityDependencies,
  { batch_export_id, start, end, deep }: Verification,
  signal: AbortSignal,
) {
  // Its readers of files are large, and most workers never verify.
  const { verifyBatchExport } = await import('../src/verify/verify_batch_export.ts');
  const report = await verifyBatchExport(
    {
      pool,
      keyRing,
      settings,
      sourceUrl: settings.SOURCE_DATABASE_URL,
      onError: ({ type, message }) => {
        logger.warn({ batch_export_id, type }, `A verification repeats a request. ${message}`);
      },
    },
    {
      batchExportId: batch_export_id,
      from: start,
      to: end,
      deep,
      signal,
      manifestBounds: { count: bounds.verifiedManifests, bytes: bounds.verifiedManifestBytes },
    },
  );
  return { report };
}
