import { crc32 } from 'node:zlib';
import { haveSameRows, rowsOfFingerprint } from '../domain/fingerprint.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { type ExistingRun, exportedFingerprint, sourceAfter } from '../domain/run_state.ts';
import { formatCrc32 } from '../encoding/encoder.ts';
import { type ExportCall, type ExportDependencies, noEncoder, type OpenedCall } from './export_context.ts';
import { type OpenedErasure, openPublishedRows } from './published_rows.ts';
import { writeRejectedFile } from './rejected.ts';

/** The new files are not the old ones without the erased rows. Nothing was published. */
class ErasureMismatch extends Error {
  override readonly name = 'ErasureMismatch';
}

/** The manifest was replaced since the erasure searched it. It searches the interval again. */
class ErasureObsolete extends Error {
  override readonly name = 'ErasureObsolete';
}

/** Opens the files of the manifest that a run of an erasure replaces. @throws ErasureObsolete, DestinationError */
export async function openErasure(
  { dependencies }: Pick<ExportCall, 'dependencies'>,
  run: ExistingRun,
): Promise<OpenedErasure> {
  const { recorder, openLocation, readErasedIds } = dependencies;
  const replaced = requireSearched(run, await recorder.findReplaced(run));
  const [files, erased, columns] = await Promise.all([
    recorder.readReplacedFiles(replaced),
    readErasedIds({ team_id: run.spec.team_id, erasure_id: run.spec.erasure_id ?? '' }),
    columnsOf(dependencies, run),
  ]);
  const location = await openLocation(replaced.run.spec);
  const { spec, rejected_file } = replaced.run;
  return {
    replaced,
    rows: openPublishedRows({ spec, files, rejected_file, location, columns }, new Set(erased)),
    close: location.close,
  };
}

const columnsOf = async (
  { source, readSelection }: Pick<ExportDependencies, 'source' | 'readSelection'>,
  { spec }: ExistingRun,
) => source.columns(spec.model, await readSelection(spec));

/** Returns the run whose manifest the erasure searched. @throws ErasureObsolete when it is not the current one */
export function requireSearched(run: ExistingRun, replaced: ReplacedRun | null): ReplacedRun {
  const searched = run.replacement?.replaced;
  if (replaced && replaced.run_id === searched?.run_id && replaced.run.generation === searched.generation)
    return replaced;
  throw new ErasureObsolete('The interval has another manifest than the one that the erasure searched.');
}

/**
 * Finishes the export of a run of an erasure: writes the rejected rows that stay, and compares the new files with the old ones.
 * Their fingerprint must be that of the old ones without the erased rows, and all values of all other rows must be the same, as the
 * readers of `verify` read them.
 * @throws ErasureMismatch
 */
export async function finishErasure(
  call: OpenedCall,
  { replaced, rows }: OpenedErasure,
  run: ExistingRun,
): Promise<ExistingRun> {
  const { dependencies, runId, destination, progress, signal } = call;
  const { recorder } = dependencies;
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const rejected = await rows.rejected(signal);
  const { bytes, fingerprint } = rejected;
  const summary = { rows: rejected.rows, bytes: bytes.length, crc32: formatCrc32(crc32(bytes)) };
  const counted =
    rejected.rows === 0
      ? run
      : await writeRejectedFile(call, run, {
          summary: () => ({ ...summary, fingerprint, first: null, last: null }),
          bytes: () => bytes,
        });
  if (counted.generation !== run.generation) return counted;
  const exported = exportedFingerprint(counted);
  const written = openPublishedRows(
    {
      spec: run.spec,
      files: await recorder.readFiles(runId, counted),
      rejected_file: null,
      location: destination,
      columns: await columnsOf(dependencies, run),
    },
    new Set(),
  );
  const onRow = (): void => {
    progress.rows += 1;
  };
  const hasRows = counted.source_fingerprint !== null && haveSameRows(exported, counted.source_fingerprint);
  if (!hasRows || (await rows.contents(signal, onRow)) !== (await written.contents(signal, onRow)))
    throw new ErasureMismatch(
      'The new files differ from the old ones by other rows than those of the erased persons. Nothing was published.',
    );
  const before = exportedFingerprint(replaced.run);
  const source = replaced.run.finished ? sourceAfter(replaced.run) : before;
  const erased = rowsOfFingerprint(before) - rowsOfFingerprint(exported);
  return recorder.finishExport(runId, counted.generation, {
    source_rows: Math.max(0, (replaced.run.finished?.source_rows ?? rowsOfFingerprint(before)) - erased),
    fingerprint: source.all_events ? source : exported,
    encoder: counted.encoder ?? noEncoder,
  });
}
