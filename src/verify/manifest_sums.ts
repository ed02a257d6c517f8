import type { Manifest } from '../destination/manifest.ts';
import { compareKeys } from './row.ts';
import type { FindingCollector } from './finding_collector.ts';

/** Checks what a manifest says against itself, and notes what a reader may want to know. */
export function checkSums(manifest: Manifest, name: string, collector: FindingCollector): void {
  const wrong = (detail: string) => collector.add('manifest_inconsistent', name, detail);
  for (const member of ['rows', 'bytes'] as const) {
    const sum = manifest.files.reduce((total, file) => total + file[member], 0);
    if (sum !== manifest[member])
      wrong(`The manifest says ${manifest[member]} ${member}; its files have ${sum} together.`);
  }
  if (new Set(manifest.files.map(({ key }) => key)).size !== manifest.files.length)
    collector.add('file_shared', name, 'The manifest names a file twice.');
  let reached: { key: string; last: NonNullable<Manifest['files'][number]['last']> } | undefined;
  for (const { key, first, last } of manifest.files) {
    if (!first || !last) continue;
    if (compareKeys(first, last) > 0) wrong(`The first key of ${key} lies behind its last.`);
    if (reached && compareKeys(reached.last, first) > 0) wrong(`${key} begins before ${reached.key} ends.`);
    reached = { key, last };
  }
  if (!manifest.settled)
    collector.note('A transaction was still open when it was read, which may have added rows since.');
  const accounted = manifest.rows + manifest.rejected;
  if (manifest.source_rows !== accounted)
    collector.note(
      `Right after it was read, the source had ${manifest.source_rows} rows; ${accounted} were read.`,
    );
}
