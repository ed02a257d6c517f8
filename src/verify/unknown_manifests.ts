import { isId } from '../contract/workflow_ids.ts';
import type { Pool } from '../journal/database.ts';
import { createFindingCollector } from './finding_collector.ts';
import type { LoadedManifest } from './manifests.ts';
import { intervalOf } from './ranges.ts';
import type { Finding } from './report.ts';

/**
 * Finds manifests whose run the journal does not have: it was restored from a backup that is older than the run, or another
 * installation exports to the same prefix. The manifests were read before, so that the journal has the runs of this one.
 */
export async function findUnknownManifests(
  pool: Pool,
  manifests: readonly LoadedManifest[],
): Promise<Finding[]> {
  const ids = new Set(manifests.map(({ manifest }) => manifest.run_id));
  const { rows } = await pool.query<{ id: string }>(
    `select stream_id as id from exportd.journal_streams where stream_type = 'run' and stream_id = any($1::uuid[])`,
    // Whatever another program wrote into a manifest is a run that the journal does not have.
    [[...ids].filter(isId)],
  );
  const known = new Set(rows.map(({ id }) => id));
  return manifests
    .filter(({ manifest }) => !known.has(manifest.run_id))
    .flatMap(({ manifest, name }) => {
      const collector = createFindingCollector(intervalOf(manifest), name);
      collector.add(
        'manifest_unknown',
        name,
        `The journal has no run ${manifest.run_id}, which wrote this manifest: the journal was restored from an older backup, or another installation exports to this prefix. Backfill the interval: its run adopts the manifest and writes the next generation.`,
      );
      return collector.findings();
    });
}
