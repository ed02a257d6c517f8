import type { Manifest } from '../destination/manifest.ts';
import { requireActive } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { formatInterval } from './row_range.ts';

/**
 * Records a manifest that the journal does not know as the current one of its interval. The control database may have
 * been restored from a backup, or a run may have ended before it could record that it had published.
 * @throws RunEnded, GenerationSuperseded
 */
export async function adoptManifest(
  { recorder }: Pick<ExportDependencies, 'recorder'>,
  runId: string,
  manifest: Manifest,
): Promise<void> {
  const run = requireActive(await recorder.read(runId));
  const adopted = await recorder.adoptManifest(runId, run.generation, manifest);
  await recorder.log(
    adopted,
    runId,
    'WARNING',
    `The bucket has a manifest of ${formatInterval(run)} that the journal does not know: generation ${manifest.generation} of ` +
      `run ${manifest.run_id}. The run continues above it, with generation ${adopted.generation}. This is expected after the ` +
      'control database was restored from a backup.',
  );
}
