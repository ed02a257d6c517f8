import type { Manifest } from '../destination/manifest.ts';
import { addSums, differingIndexes, rowsOf, sumsOf } from './bucket_sums.ts';
import { earlierFilesOf } from './earlier_files.ts';
import { compareKeys } from './row.ts';
import type { FindingCollector } from './finding_collector.ts';

/** Checks that a manifest is consistent, and adds notes for readers. */
export function checkSums(manifest: Manifest, name: string, collector: FindingCollector): void {
  const addProblem = (detail: string) => collector.add('manifest_inconsistent', name, detail);
  for (const field of ['rows', 'bytes'] as const) {
    const sum = manifest.files.reduce((total, file) => total + file[field], 0);
    if (sum !== manifest[field])
      addProblem(`The manifest has ${manifest[field]} ${field}, but the sum of its files is ${sum}.`);
  }
  const differing = bucketsThatDiffer(manifest);
  if (differing > 0)
    addProblem(`The fingerprint of the manifest differs from the sum of its files in ${differing} buckets.`);
  for (const { key, rows, fingerprint: own } of manifest.files)
    if (rowsOf(sumsOf(own)) !== rows) addProblem(`The fingerprint of ${key} has not ${rows} rows.`);
  const earlier = earlierFilesOf(manifest);
  const keys = [...manifest.files, ...earlier].map(({ key }) => key);
  for (const { key, generation } of earlier)
    if (generation >= manifest.generation)
      addProblem(`${key} is no file of an earlier generation, but of generation ${generation}.`);
  if (new Set(keys).size !== keys.length)
    collector.add('file_shared', name, 'The manifest references a file twice.');
  let previous: { key: string; last: NonNullable<Manifest['files'][number]['last']> } | undefined;
  for (const { key, first, last } of manifest.files) {
    if (!first || !last) continue;
    if (compareKeys(first, last) > 0) addProblem(`The first key of ${key} is greater than its last.`);
    if (previous && compareKeys(previous.last, first) > 0)
      addProblem(`${key} starts before the end of ${previous.key}.`);
    previous = { key, last };
  }
  if (!manifest.settled)
    collector.note('It was exported while a transaction was open, which may have added rows since.');
  const accounted = manifest.rows + manifest.rejected;
  if (manifest.source_rows !== accounted)
    collector.note(
      `The source had ${manifest.source_rows} rows right after reading; ${accounted} were read.`,
    );
}

/** In how many buckets the fingerprint of a manifest differs from the sum of its files. */
function bucketsThatDiffer({ fingerprint, files, rejected_file }: Manifest): number {
  if (fingerprint.all_events) return 0;
  const parts = [...files, ...(rejected_file ? [rejected_file] : [])].map((file) => sumsOf(file.fingerprint));
  return differingIndexes(sumsOf(fingerprint), addSums(...parts)).length;
}
