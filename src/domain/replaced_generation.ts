import {
  nothingEarlier,
  type AdoptedManifest,
  type EarlierFile,
  type EarlierGenerations,
} from './earlier_generations.ts';
import type { ExportedFile } from './exported_files.ts';
import { coversReplaced } from './replacement.ts';
import { filesOf, type ExistingRun, type RunSpec } from './run_state.ts';

/** A published run whose manifest is replaced. */
export interface ReplacedRun {
  readonly run_id: string;
  readonly run: ExistingRun;
}

type CheckedRun = Pick<ExistingRun, 'spec' | 'replacement' | 'ranges'>;

/** Whether a run was found to have every row of the generation that it replaces. */
export const isCovered = (run: CheckedRun, { run_id, run: replaced }: ReplacedRun): boolean =>
  run.replacement?.replaced.run_id === run_id &&
  coversReplaced(run.replacement) &&
  (run.spec.model !== 'persons' || haveSameFiles(run, replaced));

/**
 * Whether two runs wrote the same bytes. The fingerprint of persons tells which persons an interval has, and not their
 * state: the row of a person may have been deleted, which leaves an older and empty state of its distinct ids.
 */
function haveSameFiles(one: Pick<ExistingRun, 'ranges'>, other: Pick<ExistingRun, 'ranges'>): boolean {
  const bytesOf = (run: Pick<ExistingRun, 'ranges'>): string =>
    JSON.stringify(filesOf(run).map(({ rows, bytes, crc32 }) => [rows, bytes, crc32]));
  return bytesOf(one) === bytesOf(other);
}

/**
 * Decides what a run leaves of the generation that it replaces and of those before. Without proof that the run's files
 * have the rows of a file, and without permission to shrink, the file stays. Another model is the owner's choice: nothing
 * of the former one stays.
 * @param context whether the run may shrink its interval, and whether both runs write to the same bucket
 */
export function earlierGenerationsOf(
  run: CheckedRun,
  replacedRun: ReplacedRun,
  context: { readonly mayShrink: boolean; readonly isSameBucket: boolean },
): EarlierGenerations {
  const { spec } = run;
  const { run: replaced } = replacedRun;
  const { generation } = replaced;
  if (context.mayShrink || replaced.spec.model !== spec.model)
    return { ...nothingEarlier, covers: generation };
  const covered = isCovered(run, replacedRun);
  const before = replaced.earlier_generations;
  const files = covered ? [] : filesOf(replaced);
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
export const adoptedRun = (adopted: AdoptedManifest, spec: RunSpec): ReplacedRun => ({
  run_id: adopted.run_id,
  run: {
    status: 'Completed',
    spec: { ...spec, model: adopted.model, config_version: adopted.config_version },
    records_total_count: adopted.source_rows,
    source_fingerprint: null,
    read_since: null,
    settled: adopted.settled,
    unsettled_barrier: null,
    replacement: null,
    generation: adopted.generation,
    late_generations: 0,
    encoder: adopted.encoder,
    ranges: [
      {
        after: null,
        until: null,
        attempt: 0,
        upload: null,
        files: adopted.files.map((file) => ({ ...file, rejected: 0, expires_at: null })),
        next_file: adopted.files.length,
        finished: true,
      },
    ],
    rejected_file: adopted.rejected_file && { ...adopted.rejected_file, first: null, last: null },
    finished: {
      source_rows: adopted.source_rows,
      fingerprint: adopted.fingerprint,
      encoder: adopted.encoder,
    },
    adopted: null,
    failed_attempts: {},
    earlier_generations: { ...nothingEarlier, kept: adopted.kept, earlier: adopted.earlier },
    publish_started_at: adopted.created_at,
    publish_claims: 1,
    publish_resumed: false,
  },
});
