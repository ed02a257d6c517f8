import type { CompletedFile, ExportedFile } from './exported_files.ts';
import { coversReplaced } from './replacement_check.ts';
import { type EarlierFile, type EarlierGenerations, nothingEarlier } from './earlier_generations.ts';
import { createdState, openRange } from './run.ts';
import { earlierGenerationsOf, type ExistingRun, type RunSpec } from './run_state.ts';

/** A published run whose manifest is replaced. */
export interface ReplacedRun {
  readonly run_id: string;
  readonly run: ExistingRun;
  /** The run that found its manifest in the bucket; null if the journal knew it. */
  readonly adopted_by: string | null;
}

type CheckedRun = Pick<ExistingRun, 'spec' | 'replacement'>;

/** The files of a run, and of the run that it replaces. */
interface ComparedFiles {
  readonly own: readonly CompletedFile[];
  readonly replaced: readonly CompletedFile[];
}

/** Whether only the rows decide if a run covers the generation that it replaces, and it has them all. */
export const isCoveredByRows = (run: CheckedRun, replaced: Pick<ReplacedRun, 'run_id'>): boolean =>
  hasEveryRow(run, replaced) && run.spec.model !== 'persons';

/** Whether a run was found to have every row of the generation that it replaces. */
const hasEveryRow = ({ replacement }: CheckedRun, { run_id }: Pick<ReplacedRun, 'run_id'>): boolean =>
  replacement?.replaced.run_id === run_id && coversReplaced(replacement);

/**
 * Whether two runs wrote the same bytes. The fingerprint of persons tells which persons an interval has, and not their
 * state: the row of a person may have been deleted, which leaves an older and empty state of its distinct ids.
 */
function haveSameBytes({ own, replaced }: ComparedFiles): boolean {
  const bytesOf = (files: readonly CompletedFile[]): string =>
    JSON.stringify(files.map(({ rows, bytes, crc32 }) => [rows, bytes, crc32]));
  return bytesOf(own) === bytesOf(replaced);
}

/**
 * Decides what a run leaves of the generation that it replaces and of those before. Without proof that the run's files
 * have the rows of a file, and without permission to remove others, the file stays. Another model is the owner's choice: nothing
 * of the former one stays.
 * @param context whether the run may shrink its interval, whether both runs write to the same bucket, and the files of
 *   both, which `isCoveredByRows` makes unnecessary
 */
export function decideEarlierGenerations(
  run: CheckedRun,
  replacedRun: ReplacedRun,
  context: { readonly mayShrink: boolean; readonly isSameBucket: boolean; readonly files: ComparedFiles },
): EarlierGenerations {
  const { spec } = run;
  const { run: replaced } = replacedRun;
  // Its files become those of the run.
  if (run.replacement?.outcome === 'late_rows_added')
    return { ...earlierGenerationsOf(replaced), covers: null };
  const { generation } = replaced;
  const isRemoval = run.replacement?.outcome === 'removal_decided';
  if (context.mayShrink || isRemoval || replaced.spec.model !== spec.model)
    return { ...nothingEarlier, covers: generation };
  const covered =
    isCoveredByRows(run, replacedRun) || (hasEveryRow(run, replacedRun) && haveSameBytes(context.files));
  const before = earlierGenerationsOf(replaced);
  const files = covered ? [] : context.files.replaced;
  const rejected = covered || !replaced.rejected_file ? [] : [replaced.rejected_file];
  const isPersons = spec.model === 'persons';
  const kept = [...before.kept, ...asEarlier(generation, isPersons ? rejected : [...files, ...rejected])];
  const earlier = [...before.earlier, ...asEarlier(generation, isPersons ? files : [])];
  const covers = covered ? generation : null;
  if (context.isSameBucket) return { covers, kept, earlier, elsewhere: before.elsewhere };
  // Its manifest stays as long as it names a file that stays.
  const staying = [...kept, ...earlier].map((file) => file.generation);
  const elsewhere = [...before.elsewhere, ...staying, ...(staying.length > 0 ? [generation] : [])];
  return { ...nothingEarlier, covers, elsewhere: [...new Set(elsewhere)] };
}

const asEarlier = (
  generation: number,
  files: readonly Pick<ExportedFile, 'key' | 'rows' | 'bytes' | 'crc32'>[],
): EarlierFile[] => files.map(({ key, rows, bytes, crc32 }) => ({ key, rows, bytes, crc32, generation }));

/** The run that wrote an adopted manifest, as far as the manifest tells; `spec` is that of the run which found it. */
export const adoptedRun = (
  adopted: NonNullable<ExistingRun['adopted']>,
  spec: RunSpec,
  adopted_by: string,
): ReplacedRun => ({
  run_id: adopted.run_id,
  adopted_by,
  run: {
    ...createdState(
      { ...spec, model: adopted.model, config_version: adopted.config_version },
      adopted.created_at,
    ),
    status: 'Completed',
    records_total_count: adopted.source_rows,
    settled: adopted.settled,
    generation: adopted.generation,
    encoder: adopted.encoder,
    ranges: [
      { ...openRange(null, null), files: adopted.files, next_file: adopted.files.count, finished: true },
    ],
    rejected_file: adopted.rejected_file && { ...adopted.rejected_file, first: null, last: null },
    phase: {
      name: 'publishing',
      finished: {
        source_rows: adopted.source_rows,
        fingerprint: adopted.fingerprint,
        encoder: adopted.encoder,
      },
      claimed_at: adopted.created_at,
      is_resumed: false,
      earlier_generations: { ...nothingEarlier, kept: adopted.kept, earlier: adopted.earlier },
    },
    publish_claims: 1,
  },
});
