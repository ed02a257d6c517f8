import { type CheckContext, type ManifestCheck, rereadRows } from './check_manifest.ts';
import { intervalOf } from './locations.ts';
import { rowsInBoth } from './compare_rows.ts';
import { overlappingPairs } from './gaps.ts';
import { createFindingCollector, type Finding } from './report.ts';
import { keyText, type ComparedRow } from '../readers/row.ts';
import { formatMicroseconds, inOrder, sorted, within } from './ordered_rows.ts';

/** Finds time that two manifests cover, and rows that are in both. */
export async function findOverlaps(
  context: CheckContext,
  checks: readonly ManifestCheck[],
): Promise<Finding[]> {
  const intervals = checks.map((check) => ({ ...intervalOf(check.found.manifest), check }));
  const findings: Finding[] = [];
  for (const { shared, one, other } of overlappingPairs(intervals)) {
    const collector = createFindingCollector(shared, other.check.found.name);
    collector.add(
      'overlap',
      other.check.found.name,
      `${one.start} to ${one.end} and ${other.start} to ${other.end} both have a manifest; the other one is ${one.check.found.name}.`,
    );
    if (canBeCompared(one.check, other.check)) {
      collector.hint('duplicate', `They are also in ${one.check.found.name}.`);
      const [left, right] = [one, other].map(({ check }) =>
        within(rowsOf(context, check), shared, () => undefined),
      );
      if (left && right) for await (const row of rowsInBoth(left, right)) collector.row('duplicate', row);
    }
    findings.push(...collector.findings());
  }
  return findings;
}

/**
 * Whether the rows of two manifests can be compared: they have the same model and keys, and are sorted or few enough
 * to be sorted.
 */
const canBeCompared = (one: ManifestCheck, other: ManifestCheck): boolean =>
  one.found.manifest.model === other.found.manifest.model &&
  [one, other].every(({ source_rows, hasKeys }) => source_rows !== null && hasKeys);

/** Searches misplaced rows in the manifests of their intervals. A row that is there too is a duplicate. */
export async function reportMisplacedRows(
  context: CheckContext,
  checks: readonly ManifestCheck[],
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const targetOf = createTargetFinder(checks);
  for (const check of checks.filter(({ misplacedRows }) => misplacedRows.length > 0)) {
    const collector = createFindingCollector(intervalOf(check.found.manifest), check.found.name);
    for (const [target, misplacedRows] of Map.groupBy(check.misplacedRows, (misplacedRow) =>
      targetOf(misplacedRow, check),
    )) {
      const inTarget = target ? await keysInTarget(context, target, misplacedRows) : new Set<string>();
      for (const misplacedRow of misplacedRows) {
        collector.row(inTarget.has(keyText(misplacedRow)) ? 'duplicate' : 'unexpected', misplacedRow);
        if (target && inTarget.has(keyText(misplacedRow)))
          collector.hint('duplicate', `They belong to ${target.found.name}, which contains them too.`);
        else collector.hint('unexpected', 'Some belong to another interval.');
      }
    }
    findings.push(...collector.findings());
  }
  return findings;
}

/** Creates a function that finds the manifest to which a misplaced row belongs. */
function createTargetFinder(
  checks: readonly ManifestCheck[],
): (misplacedRow: ComparedRow, from: ManifestCheck) => ManifestCheck | undefined {
  const targets = checks.map((check) => {
    const { start, end } = intervalOf(check.found.manifest);
    return {
      check,
      model: check.found.manifest.model,
      start: formatMicroseconds(start),
      end: formatMicroseconds(end),
    };
  });
  return ({ inserted_at }, from) =>
    targets.find(
      ({ check, model, start, end }) =>
        check !== from && model === from.found.manifest.model && start <= inserted_at && inserted_at < end,
    )?.check;
}

async function keysInTarget(
  { signal }: CheckContext,
  { found }: ManifestCheck,
  misplacedRows: readonly ComparedRow[],
): Promise<Set<string>> {
  const requested = new Set(misplacedRows.map(keyText));
  const foundKeys = new Set<string>();
  for await (const row of rereadRows({ reader: found.location.reader, signal }, found.manifest))
    if (requested.has(keyText(row))) foundKeys.add(keyText(row));
  return foundKeys;
}

function rowsOf({ signal }: CheckContext, { found, disordered }: ManifestCheck): AsyncGenerator<ComparedRow> {
  const rows = rereadRows({ reader: found.location.reader, signal }, found.manifest);
  return (disordered ? sorted : inOrder)(rows);
}
