import { bounds } from '../config/bounds.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { handlerOf, type JobHandler, type JobKind, type JobDependencies } from '../jobs/jobs.ts';
import { recordIntervalCheck } from '../projections/interval_checks.ts';
import { identitiesOf } from './kept_findings.ts';
import type { VerificationReport } from './report.ts';
import type { TargetCheck } from './verify_batch_export.ts';

interface VerificationParameters extends DataInterval {
  /** Whether all values are compared, not only the presence of rows. */
  readonly deep: boolean;
}

const name = 'verification';

/** The verification of one interval of an export, the target. */
export const verificationJob: JobKind<VerificationParameters, VerificationReport> = {
  name,
  workflowType: 'batchExportVerification',
  summary: 'Verification of an interval',
  limit: { kinds: [name], max: bounds.verifications.max },
  attempts: 3,
  timeoutMs: () => 55 * 60_000,
  isKept: true,
};

/** What a report has found, as `3 missing, 1 duplicate`, or its findings; null if it is nothing. */
function differenceIn({ ok, totals, findings }: VerificationReport): string | null {
  if (ok) return null;
  const { missing, duplicate, unexpected, mismatched } = totals;
  const rows = Object.entries({ missing, duplicate, unexpected, mismatched })
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count.toLocaleString('en')} ${what}`);
  return rows.length > 0 ? rows.join(', ') : [...new Set(findings.map(({ kind }) => kind))].join(', ');
}

/** Compares the objects of one interval with the source, as `exportd verify` does. */
export const createVerificationHandler = ({
  pool,
  keyRing,
  settings,
  logger,
  targets,
}: JobDependencies & {
  /** What else is compared. */
  readonly targets: readonly TargetCheck[];
}): JobHandler =>
  handlerOf(verificationJob, async ({ target, parameters, created_at }, signal) => {
    const { start, end, deep } = parameters;
    // Its readers of files are large, and most workers never verify.
    const { verifyBatchExport } = await import('./verify_batch_export.ts');
    const report = await verifyBatchExport(
      {
        pool,
        keyRing,
        settings,
        sourceUrl: settings.SOURCE_DATABASE_URL,
        targets,
        onError: ({ type, message }) => {
          logger.warn({ batch_export_id: target, type }, `A verification repeats a request. ${message}`);
        },
      },
      {
        batchExportId: target,
        from: start,
        to: end,
        deep,
        signal,
        manifestBounds: { count: bounds.verifiedManifests, bytes: bounds.verifiedManifestBytes },
      },
    );
    await recordIntervalCheck(pool, {
      batch_export_id: target,
      start,
      end,
      checked_by: name,
      checked_at: created_at,
      difference: differenceIn(report),
      findings: identitiesOf(report.findings),
    });
    return report;
  });
