import { createKeyRing } from '../config/key_ring.ts';
import { readSettings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { StackEnvironment } from '../local_stack/stack_file.ts';
import { verifyBatchExport } from '../verify/verify_batch_export.ts';

/** How exports are verified: every value, or the fingerprints of manifests. */
export type VerifyDepth = 'deep' | 'fast';

/** Compares an export with the source, as `exportd verify`. @throws LaunchError that names the findings */
export async function verifyRun(
  pool: Pool,
  environment: StackEnvironment,
  batchExportId: string,
  { start, end }: { readonly start: string; readonly end: string },
  depth: VerifyDepth,
): Promise<void> {
  const settings = readSettings({ ...environment });
  const { ok, findings } = await verifyBatchExport(
    {
      pool,
      settings,
      keyRing: createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS),
      sourceUrl: settings.SOURCE_DATABASE_URL,
      onError: () => undefined,
    },
    { batchExportId, from: start, to: end, [depth]: true },
  );
  if (!ok)
    throw new LaunchError(
      `The export does not match its source. ${findings.map(({ detail }) => detail).join(' ')}`,
    );
}
