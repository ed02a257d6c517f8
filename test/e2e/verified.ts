import { createKeyRing } from '../../src/config/key_ring.ts';
import type { VerificationReport } from '../../src/verify/report.ts';
import { verifyBatchExport } from '../../src/verify/verify_batch_export.ts';
import type { Stack } from './stack.ts';

/** What `exportd verify --deep` says of an export. */
export const verified = (
  { pool, settings, databaseUrl }: Stack,
  batchExportId: string,
): Promise<VerificationReport> =>
  verifyBatchExport(
    {
      pool,
      keyRing: createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS),
      settings,
      sourceUrl: databaseUrl,
      onWaiting: () => undefined,
    },
    { batchExportId, deep: true },
  );
