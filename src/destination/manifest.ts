import type { z } from 'zod';
import type { Fingerprint } from '../domain/fingerprint.ts';
import { exportedFingerprint, type CompletedFile, type ExistingRun } from '../domain/run.ts';
import type { ExportedColumn } from '../source/source.ts';
import { manifestSchema } from './manifest_schema.ts';

/** The list of files that readers follow: they contain each row of an interval exactly once. */
export type Manifest = Readonly<z.infer<typeof manifestSchema>>;

/**
 * Creates the manifest of a run whose publishing was claimed, with its completed files in key order. It depends on
 * journaled facts only, so repeating it yields the same bytes.
 * @throws RangeError when the run is not that far
 */
export function manifestOf(
  runId: string,
  run: ExistingRun,
  files: readonly CompletedFile[],
  columns: readonly ExportedColumn[],
): Manifest {
  if (!run.finished || run.publish_started_at === null)
    throw new RangeError('A manifest requires a finished run whose publishing was claimed.');
  const { spec, rejected_file } = run;
  return {
    version: 1,
    batch_export_id: spec.batch_export_id,
    run_id: runId,
    generation: run.generation,
    config_version: spec.config_version,
    model: spec.model,
    data_interval_start: spec.data_interval_start,
    data_interval_end: spec.data_interval_end,
    settled: run.settled,
    columns: columns.map(({ name, type }) => ({ name, type })),
    rows: sum(files, ({ rows }) => rows),
    bytes: sum(files, ({ bytes }) => bytes),
    source_rows: run.finished.source_rows,
    fingerprint: publishedFingerprint(run, run.finished.fingerprint),
    rejected: rejected_file?.rows ?? 0,
    rejected_file: rejected_file && {
      key: rejected_file.key,
      rows: rejected_file.rows,
      fingerprint: rejected_file.fingerprint,
      bytes: rejected_file.bytes,
      crc32: rejected_file.crc32,
    },
    encoder: run.finished.encoder,
    files: files.map(manifestFileOf),
    kept: [...run.earlier_generations.kept],
    earlier: [...run.earlier_generations.earlier],
    created_at: run.publish_started_at,
  };
}

/**
 * The rows of the files and the rejected ones. Where persons decide which events are selected, all events of the project
 * from before the first of them was read: one that arrived later may be missing.
 */
const publishedFingerprint = (run: ExistingRun, source: Fingerprint): Fingerprint =>
  source.all_events && run.read_since ? run.read_since : exportedFingerprint(run);

const manifestFileOf = ({ key, rows, fingerprint, bytes, crc32, first, last }: CompletedFile) => ({
  key,
  rows,
  fingerprint,
  bytes,
  crc32,
  first,
  last,
});

/** Formats a manifest for storage: indented JSON and a line break. */
export const formatManifest = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 2)}\n`;

/** Parses a stored manifest; undefined when the text is not a manifest. */
export function parseManifest(text: string): Manifest | undefined {
  try {
    return manifestSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const sum = <Item>(items: readonly Item[], value: (item: Item) => number): number =>
  items.reduce((total, item) => total + value(item), 0);
