import { bounds } from '../src/config/bounds.ts';
import type { KeyRing } from '../src/config/key_ring.ts';
import type { Settings } from '../src/config/settings.ts';
import { classifyError, stackFramesOf } from '../src/failures/classify_error.ts';
import type { Pool } from '../src/journal/database.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { CannotVerify } from '../src/verify/report.ts';
import { findVerification, recordVerification, type Verification } from '../src/verify/verifications.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

interface VerificationActivityDependencies {
  readonly pool: Pool;
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
       * rows by their ids, so it stays out of the history. An error is an outcome too: the person can repeat it.
       */
      verifyInterval: async (
        { signal },
        { verification_id }: { readonly verification_id: string },
      ): Promise<void> => {
        const found = await findVerification(pool, verification_id);
        if (found?.status !== 'pending') return;
        const outcome = await verify(dependencies, found, signal).catch((error: unknown) => {
          if (signal.aborted) throw error;
          if (error instanceof CannotVerify) return { error: error.message };
          const { type, message } = classifyError(error);
          if (type === 'UnexpectedError') logger.error({ stack: stackFramesOf(error) }, message);
          return { error: message };
        });
        await recordVerification(pool, verification_id, outcome);
      },
    },
  );
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
      ...{ batchExportId: batch_export_id, from: start, to: end, deep, signal },
      manifestBounds: { count: bounds.verifiedManifests, bytes: bounds.verifiedManifestBytes },
    },
  );
  return { report };
}
