import { targetChecks as targets } from '../../src/temporal/capabilities.ts';
import { createKeyRing } from '../../src/config/key_ring.ts';
import type { VerificationReport } from '../../src/verify/report.ts';
import { verifyBatchExport } from '../../src/verify/verify_batch_export.ts';
import type { Stack } from './stack.ts';

/** The report of `exportd verify` for an export. Compares every value unless `deep` is false. */
export const verifyExport = (
  { pool, settings, databaseUrl }: Stack,
  batchExportId: string,
  { deep = true }: { readonly deep?: boolean } = {},
): Promise<VerificationReport> =>
  verifyBatchExport(
    {
      pool,
      keyRing: createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS),
      settings,
      sourceUrl: databaseUrl,
      targets,
      onError: () => undefined,
    },
    { batchExportId, deep },
  );
