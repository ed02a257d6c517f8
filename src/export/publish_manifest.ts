import { manifestOf } from '../destination/manifest.ts';
import { requireActive } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { withDestination } from './run_destination.ts';

/** Dependencies of publishing. */
export type PublishDependencies = Pick<
  ExportDependencies,
  'recorder' | 'source' | 'openDestination' | 'readSelection' | 'logger'
>;

/** The result of publishing, which is stored in the workflow's history. */
export interface PublishOutcome {
  readonly generation: number;
  readonly rows: number;
  readonly manifest_key: string;
}

/** Claims publishing, puts the manifest of an exported run and completes the run. A retry continues with the first missing step. */
export async function publishManifest(
  dependencies: PublishDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<PublishOutcome> {
  const { recorder, source, readSelection } = dependencies;
  const found = await recorder.read(runId);
  const run =
    found.status === 'Completed'
      ? found
      : await recorder.startPublish(runId, requireActive(found).generation);
  return withDestination(dependencies, runId, run, async (destination) => {
    const manifest_key = destination.manifestKey(run.spec);
    const columns = source.columns(run.spec.model, await readSelection(run.spec));
    const manifest = manifestOf(runId, run, columns);
    if (run.status !== 'Completed') {
      const { verified, expires_at } = await destination.putManifest(manifest_key, manifest, signal);
      if (!verified)
        await recorder.log(
          run,
          runId,
          'WARNING',
          'The manifest was written but could not be read back. Grant the credentials s3:GetObject to have it verified.',
        );
      await recorder.complete(runId, run.generation, manifest_key, expires_at);
    }
    return { generation: run.generation, rows: manifest.rows, manifest_key };
  });
}
